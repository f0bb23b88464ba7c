// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/traceback_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"
#include "collector/program/libraries/libraries.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestName = 200;  // characters of an exception's class with its module

bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool of_name(char c) {
  return letter(c) || (c >= '0' && c <= '9');
}

/// "a.b.Name" at the start, before a colon or the end of the line.
std::string_view leading_class(std::string_view line) {
  std::size_t end = 0;
  bool begins = true;  // at the start of a part
  while (end < line.size() && end < kLongestName) {
    const char c = line[end];
    const bool fits = begins ? letter(c) : of_name(c) || c == '.';
    if (!fits) {
      break;
    }
    begins = c == '.';
    ++end;
  }
  const bool ends = end == line.size() || line[end] == ':' || line.substr(end) == " ";
  return begins || !ends ? std::string_view() : line.substr(0, end);
}

bool named_like_exception(std::string_view name) {
  constexpr std::array<std::string_view, 10> kEndings = {
      "Error", "Exception", "Interrupt", "Exit",    "Warning",
      "Group", "Iteration", "Timeout",   "Expired", "Failed"};
  return name.size() > 4 && std::any_of(kEndings.begin(), kEndings.end(),
                                        [name](auto ending) { return name.ends_with(ending); });
}

/// "/srv/train.py:57" → its file and line; `rest` receives the text after it.
std::optional<model::CallSite> file_and_line(std::string_view text, std::string_view& rest) {
  const std::size_t end = text.find(".py:");
  if (end == std::string_view::npos || text.substr(0, end).find(' ') != std::string_view::npos) {
    return std::nullopt;
  }
  rest = text.substr(end + 4);
  const auto line = leading_number(rest);
  if (!line) {
    return std::nullopt;
  }
  rest.remove_prefix(std::min(rest.find_first_not_of("0123456789"), rest.size()));
  return model::CallSite{
      .file = std::string(text.substr(0, end + 3)), .line = *line, .function = {}};
}

}  // namespace

std::optional<int> leading_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || value < 0 || value >= model::kMaxWorldSize) {
    return std::nullopt;
  }
  return value;
}

std::size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

std::string_view without_margin(std::string_view line) {
  constexpr std::string_view kBar = "│";
  constexpr std::string_view kCorner = "╭";
  const std::string_view text = line.substr(indentation(line));
  if (text.starts_with(kBar) || text.starts_with(kCorner)) {
    std::string_view inside = base::trim(text.substr(kBar.size()));
    if (inside.ends_with(kBar)) {
      inside.remove_suffix(kBar.size());
    }
    return base::trim(inside);
  }
  const bool margin = text.size() < line.size() && text.size() > 1 &&
                      (text.front() == '|' || text.front() == '+') && indentation(line) % 2 == 0;
  if (!margin || (text[1] != ' ' && text[1] != '-')) {
    return line;
  }
  return text[1] == '-' ? std::string_view() : text.substr(2);
}

bool begins_traceback(std::string_view line) {
  return line.find("Traceback (most recent call last)") != std::string_view::npos;
}

bool chains_tracebacks(std::string_view line) {
  return line.find("The above exception was the direct cause of") != std::string_view::npos ||
         line.find("During handling of the above exception, another") != std::string_view::npos;
}

EndLike end_like(std::string_view line) {
  const std::string_view name = leading_class(line);
  if (name.empty()) {
    return EndLike::kNo;
  }
  const std::size_t dot = name.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? name : name.substr(dot + 1);
  if (named_like_exception(last) || last == "SystemExit") {
    return EndLike::kYes;
  }
  const bool dotted = dot != std::string_view::npos && name.front() != '.';
  const bool capital = last.front() >= 'A' && last.front() <= 'Z';
  // A constant (INFO, WARNING) is the prefix of a logger.
  const bool shouted =
      std::none_of(last.begin(), last.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return dotted || (capital && !shouted) ? EndLike::kPerhaps : EndLike::kNo;
}

std::optional<model::CallSite> traceback_place(std::string_view line) {
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kIn = ", in ";
  line = base::trim(line);
  const std::size_t file_end = line.find(kLine);
  if (!line.starts_with(kFile) || file_end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto number = leading_number(line.substr(file_end + kLine.size()));
  if (!number) {
    return std::nullopt;
  }
  model::CallSite site{.file = std::string(line.substr(kFile.size(), file_end - kFile.size())),
                       .line = *number,
                       .function = {}};
  if (const std::size_t in = line.find(kIn, file_end); in != std::string_view::npos) {
    site.function = line.substr(in + kIn.size());
  }
  return site;
}

namespace {

std::optional<model::CallSite> whole_boxed_place(std::string_view line) {
  std::string_view rest;
  auto site = file_and_line(base::trim(line), rest);
  if (!site || !rest.starts_with(" in ")) {
    return std::nullopt;
  }
  site->function = base::trim(rest.substr(4));
  return site;
}

}  // namespace

std::optional<model::CallSite> boxed_place(std::string_view cut, std::string_view line) {
  cut = base::trim(cut);
  line = base::trim(line);
  for (const std::string_view between : {"", " "}) {  // cut in a word, or between two
    auto site =
        cut.empty() ? std::nullopt : whole_boxed_place(fmt::format("{}{}{}", cut, between, line));
    if (site) {
      return site;
    }
  }
  return whole_boxed_place(line);
}

std::optional<model::CallSite> pytest_place(std::string_view line) {
  std::string_view rest;
  auto site = line.starts_with(' ') ? std::nullopt : file_and_line(base::trim(line), rest);
  if (!site || !rest.starts_with(':')) {
    return std::nullopt;
  }
  rest = base::trim(rest.substr(1));
  if (rest.starts_with("in ")) {
    site->function = base::trim(rest.substr(3));
    return site;
  }
  return rest.empty() || leading_class(rest) == rest ? site : std::nullopt;
}

std::optional<std::string_view> pytest_message(std::string_view line) {
  if (!line.starts_with("E   ") && line != "E") {
    return std::nullopt;
  }
  return line.substr(1);
}

bool is_of_launcher(const std::vector<model::CallSite>& frames) {
  constexpr std::array<std::string_view, 5> kModules = {
      "/torch/distributed/launch.py", "/torch/distributed/run.py", "/torch/distributed/launcher/",
      "/accelerate/commands/launch.py", "/deepspeed/launcher/"};
  const auto of_module = [&kModules](const model::CallSite& frame) {
    return std::any_of(kModules.begin(), kModules.end(), [&frame](std::string_view module) {
      return frame.file.find(module) != std::string::npos;
    });
  };
  const auto innermost = std::find_if(frames.rbegin(), frames.rend(), of_module);
  // The launcher may run the user's code itself.
  return innermost != frames.rend() &&
         std::none_of(frames.rbegin(), innermost,
                      [](const model::CallSite& frame) { return model::is_user_file(frame.file); });
}

bool is_of_torch_distributed(const model::CallSite& frame) {
  return frame.file.find("torch/distributed/") != std::string::npos ||
         frame.file.find("torch/nn/parallel/") != std::string::npos;
}

bool is_of_cleanup(const std::vector<model::CallSite>& frames) {
  constexpr std::array<std::string_view, 9> kEnds = {"shutdown", "close",     "__del__",
                                                     "cleanup",  "_cleanup",  "stop",
                                                     "teardown", "terminate", "_exit_function"};
  return std::any_of(frames.begin(), frames.end(), [&kEnds](const model::CallSite& frame) {
    return !model::is_user_file(frame.file) &&
           std::find(kEnds.begin(), kEnds.end(), frame.function) != kEnds.end();
  });
}

bool is_of_syntax(std::string_view name) {
  return name == "SyntaxError" || name == "IndentationError" || name == "TabError";
}

bool waits_for_children(const std::vector<model::CallSite>& frames) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kWaits = {
      {{"multiprocessing/process.py", "join"},
       {"torch/multiprocessing/spawn.py", "join"},
       {"/subprocess.py", "wait"},
       {"/subprocess.py", "communicate"}}};
  return std::any_of(frames.begin(), frames.end(), [&kWaits](const model::CallSite& frame) {
    return std::any_of(kWaits.begin(), kWaits.end(), [&frame](const auto& wait) {
      return frame.file.ends_with(wait.first) && frame.function == wait.second;
    });
  });
}

AwaitedContext awaited_context(const std::vector<model::CallSite>& frames) {
  const auto in_barrier = [](const model::CallSite& frame) {
    return frame.function == "barrier" &&
           frame.file.ends_with("torch/distributed/distributed_c10d.py");
  };
  for (std::size_t i = 1; i < frames.size(); ++i) {
    const bool enters =
        frames[i - 1].function == "__enter__" && frames[i - 1].file.ends_with("contextlib.py");
    const bool known = enters && program::lets_main_first(frames[i].function);
    if (known || (enters && std::any_of(frames.begin() + static_cast<std::ptrdiff_t>(i),
                                        frames.end(), in_barrier))) {
      return {.function = frames[i].function,
              .where = i > 1 ? frames[i - 2] : model::CallSite{},
              .lets_one_first = known};
    }
  }
  return {};
}

bool is_end_of_wait(std::string_view exception) {
  const std::string_view name = exception.substr(exception.rfind('.') + 1);
  return name == "TimeoutError" || name == "Empty";
}

std::optional<int> failed_rank_of_checkpoint(std::string_view exception) {
  constexpr std::string_view kRanks = "CheckpointException ranks:dict_keys([";
  const std::size_t at = exception.find(kRanks);
  const std::string_view rest =
      at == exception.npos ? std::string_view() : exception.substr(at + kRanks.size());
  const std::size_t end = rest.find_first_not_of("0123456789");
  return end != rest.npos && rest[end] == ']' ? leading_number(rest) : std::nullopt;
}

bool may_be_users_file(std::string_view file) {
  return model::may_be_installed_by_user(file) || file == "<stdin>" || file == "<string>";
}

}  // namespace ddpdoctor::detectors
