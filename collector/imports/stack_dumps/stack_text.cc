// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/stack_text.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/model/questions.h"
#include "collector/model/secrets.h"

namespace ddpdoctor::imports {
namespace {

bool is_module_level(const model::Thread& thread) {
  const auto outermost = std::find_if(
      thread.frames.rbegin(), thread.frames.rend(),
      [](const model::Frame& frame) { return frame.language == model::Language::kPython; });
  return outermost != thread.frames.rend() &&
         (outermost->function == "<module>" || outermost->function == "_run_code" ||
          outermost->function == "_run_module_as_main" ||
          outermost->file.starts_with("<frozen runpy"));
}

constexpr unsigned kAlignment = 6;  // bits of the address of a thread that are always 0

pid_t negative_tid(std::uint64_t number) {
  return static_cast<pid_t>(-1 - static_cast<std::int64_t>(number & 0x3fffffffU));
}

}  // namespace

StackDump new_dump() {
  StackDump dump;
  dump.process.ppid = -1;  // no pid, so that no process is taken for its parent
  return dump;
}

bool add_frame(model::Thread& thread, model::Frame frame) {
  if (thread.frames.size() >= kMostFrames) {
    return false;
  }
  thread.frames.push_back(std::move(frame));
  return true;
}

model::Thread* add_thread(StackDump& dump, pid_t tid, std::string_view name) {
  if (dump.process.threads.size() >= kMostThreads) {
    return nullptr;
  }
  model::Thread thread;
  thread.tid = tid;
  thread.name = base::elide(name, kLongestName);
  dump.process.threads.push_back(std::move(thread));
  return &dump.process.threads.back();
}

void put_main_first(StackDump& dump) {
  auto& threads = dump.process.threads;
  auto main = std::find_if(threads.begin(), threads.end(), [&dump](const model::Thread& thread) {
    return dump.process.pid != 0 && thread.tid == dump.process.pid;
  });
  if (main == threads.end()) {
    main = std::find_if(threads.begin(), threads.end(), is_module_level);
  }
  if (main != threads.end()) {
    std::rotate(threads.begin(), main, std::next(main));
  }
}

std::optional<std::int64_t> number_of(std::string_view text, std::int64_t most) {
  const auto number = take_number(text, most);
  return text.empty() ? number : std::nullopt;
}

std::optional<std::int64_t> take_number(std::string_view& text, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || value < 0 || value > most) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> out;
  while (!text.empty()) {
    if (const auto number = take_number(text, INT64_MAX)) {
      out.push_back(*number);
    } else {
      text.remove_prefix(1);
    }
  }
  return out;
}

bool shows_frames(const model::Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(),
                     [](const model::Thread& thread) { return !thread.frames.empty(); });
}

std::optional<std::int64_t> number_behind(std::string_view text, std::string_view word,
                                          std::int64_t most) {
  const std::size_t at = text.find(word);
  std::string_view rest = at == text.npos ? std::string_view() : text.substr(at + word.size());
  return at == text.npos ? std::nullopt : take_number(rest, most);
}

std::optional<std::uint64_t> hex_of(std::string_view text) {
  if (!take_prefix(text, "0x") && !take_prefix(text, "0X")) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

std::optional<pid_t> pid_of(std::string_view text) {
  const auto number = number_of(text, kMaxPid);
  return number && *number > 0 ? std::optional(static_cast<pid_t>(*number)) : std::nullopt;
}

pid_t tid_for(std::string_view address) {
  return negative_tid(hex_of(address).value_or(0) >> kAlignment);
}

void give_tids(std::string_view key, model::Process& process) {
  std::uint64_t next = std::hash<std::string_view>{}(key);
  for (model::Thread& thread : process.threads) {
    thread.tid = process.pid == 0 && thread.tid == 0 ? negative_tid(next++) : thread.tid;
  }
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<std::string_view> between(std::string_view text, std::string_view from,
                                        std::string_view to) {
  const std::size_t start = text.find(from);
  if (start == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(start + from.size());
  const std::size_t end = text.find(to);
  return end == std::string_view::npos ? std::nullopt : std::optional(text.substr(0, end));
}

std::optional<model::Frame> python_frame(std::string_view line) {
  line = base::trim(line);
  constexpr std::string_view kLine = "\", line ";
  const std::size_t file_end = line.find(kLine);
  if (!line.starts_with("File \"") || file_end == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view rest = line.substr(file_end + kLine.size());
  const auto number = take_number(rest, kMaxLine);
  if (!number) {
    return std::nullopt;
  }
  model::Frame frame;
  frame.language = model::Language::kPython;
  frame.file = base::elide(line.substr(6, file_end - 6), kLongestName);
  if (frame.file.size() > 2 && frame.file[1] == ':' && frame.file[2] == '\\') {  // of Windows
    std::replace(frame.file.begin(), frame.file.end(), '\\', '/');
    if (const std::size_t library = frame.file.find("/Lib/"); library != std::string::npos) {
      frame.file.replace(library, 5, "/lib/python3/");  // as elsewhere
    }
  }
  frame.line = static_cast<int>(*number);
  if (take_prefix(rest, ", in ") || take_prefix(rest, " in ")) {
    constexpr std::string_view kModuleInHtml = "&lt;module&gt;";  // the line after it ends a dump
    frame.function = rest == kModuleInHtml ? "<module>" : base::elide(rest, kLongestName);
  }
  return frame;
}

std::string native_name(std::string_view name) {
  name = base::trim(name);
  if (name.ends_with(" (inlined)")) {
    name.remove_suffix(std::string_view(" (inlined)").size());
  }
  std::string plain(name);
  // abseil's inline namespace: "absl::lts_20220623::Mutex::Lock".
  for (std::size_t at = plain.find("lts_2"); at != plain.npos; at = plain.find("lts_2", at)) {
    const std::size_t end = plain.find("::", at);
    if (end == plain.npos || plain.find_first_not_of("0123456789", at + 4) != end) {
      break;
    }
    plain.erase(at, end + 2 - at);
  }
  name = plain;
  const std::size_t version = name.find('@');
  if (version != std::string_view::npos && name.find('(') == std::string_view::npos) {
    name = name.substr(0, version);
  }
  return name == "??" || name == "???" ? std::string() : base::elide(name, kLongestName);
}

std::vector<std::string> words_of(std::string_view command) {
  constexpr std::size_t kMostWords = 1000;
  std::vector<std::string> words;
  for (const std::string_view word : base::split(base::trim(command), ' ')) {
    if (!word.empty() && words.size() < kMostWords) {
      words.push_back(base::elide(word, kLongestName));
    }
  }
  return model::public_command(words);
}

bool has_line_with(std::string_view head, std::span<const std::string_view> beginnings) {
  for (const std::string_view line : base::split(head, '\n')) {
    const std::string_view text = base::trim(line);
    const bool found =
        std::any_of(beginnings.begin(), beginnings.end(),
                    [text](std::string_view beginning) { return text.starts_with(beginning); });
    if (found) {
      return true;
    }
  }
  return false;
}

}  // namespace ddpdoctor::imports
