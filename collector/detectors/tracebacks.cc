// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/tracebacks.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"
#include "collector/detectors/agreement.h"
#include "collector/detectors/known_exceptions.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostBytes = 4U << 20U;   // of one log; a crash writes kilobytes
constexpr std::size_t kLongestTraceback = 400;  // lines; deep recursion is cut by Python itself
constexpr std::string_view kTraceback = "Traceback (most recent call last):";

std::optional<int> leading_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || value < 0 || value >= model::kMaxWorldSize) {
    return std::nullopt;
  }
  return value;
}

/// "-- Process 1 terminated with the following error:": torch's spawn passes on what a child
/// raised.
std::optional<int> spawned_child(std::string_view line) {
  constexpr std::string_view kStart = "-- Process ";
  if (!line.starts_with(kStart) ||
      line.find("terminated with the following error") == std::string_view::npos) {
    return std::nullopt;
  }
  return leading_number(line.substr(kStart.size()));
}

std::string_view last_part(std::string_view text) {
  if (text.size() <= kMostBytes) {
    return text;
  }
  text.remove_prefix(text.size() - kMostBytes);
  const std::size_t line = text.find('\n');
  return line == std::string_view::npos ? text : text.substr(line + 1);
}

bool begins_traceback(std::string_view line) {
  return line.find(kTraceback) != std::string_view::npos;
}

/// Python's sentence between an exception and the one that was raised because of it.
bool chains(std::string_view line) {
  return line.find("The above exception was the direct cause of") != std::string_view::npos ||
         line.find("During handling of the above exception, another") != std::string_view::npos;
}

/// The line after the frames: not indented.
bool ends_traceback(std::string_view line) {
  return !line.empty() && line.front() != ' ' && !begins_traceback(line);
}

/// Counts where the traceback shows no file of the user's.
bool may_be_users(const std::string& file) {
  return model::may_be_installed_by_user(file) || file == "<stdin>" || file == "<string>";
}

}  // namespace

std::vector<LogStream> log_streams(const model::JobModel& job) {
  std::vector<LogStream> out;
  for (const model::Log& log : job.logs) {
    std::map<std::optional<model::Rank>, LogStream> by_rank;
    std::size_t number = 0;
    std::optional<int> child;
    for (const std::string_view line : base::split(last_part(log.text), '\n')) {
      model::LogLine told = model::read_log_line(line);
      const auto of_child = spawned_child(told.text);
      child = of_child ? of_child : child;
      if (child && !told.rank && !log.rank) {
        told.rank = child;
      }
      LogStream& stream = by_rank[told.rank];
      const auto before = stream.empty() ? std::nullopt : stream.back().time;
      stream.push_back({.text = told.text,
                        .rank = told.rank ? told.rank : log.rank,
                        .time = told.time ? told.time : before,
                        .log = static_cast<std::size_t>(&log - job.logs.data()),
                        .number = ++number});
    }
    for (auto& [rank, lines] : by_rank) {
      out.push_back(std::move(lines));
    }
  }
  return out;
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

model::CallSite user_place_above(const LogStream& stream, std::size_t index) {
  model::CallSite installed;
  for (std::size_t back = 0; back < kLongestTraceback && back <= index; ++back) {
    const std::string_view line = stream[index - back].text;
    const auto site = traceback_place(line);
    if (site && model::is_user_file(site->file)) {
      return *site;
    }
    if (site && !installed.known() && may_be_users(site->file)) {
      installed = *site;
    }
    if (back > 0 && begins_traceback(line)) {
      break;
    }
  }
  return installed;
}

model::CallSite user_place_below(const LogStream& stream, std::size_t index) {
  model::CallSite innermost;
  bool inside = false;
  const std::size_t end = std::min(stream.size(), index + kLongestTraceback);
  for (std::size_t i = index; i < end; ++i) {
    const std::string_view line = stream[i].text;
    if (inside && ends_traceback(line)) {
      break;
    }
    inside = inside || begins_traceback(line);
    const auto site = inside ? traceback_place(line) : std::nullopt;
    if (site && model::is_user_file(site->file)) {
      innermost = *site;
    }
  }
  return innermost;
}

/// The user's lines of the traceback that ends above `index`, innermost first.
std::vector<model::CallSite> user_frames_above(const LogStream& stream, std::size_t index) {
  std::vector<model::CallSite> frames;
  for (std::size_t back = 1; back < kLongestTraceback && back <= index; ++back) {
    const std::string_view line = stream[index - back].text;
    if (begins_traceback(line)) {
      break;
    }
    if (auto site = traceback_place(line); site && model::is_user_file(site->file)) {
      frames.push_back(std::move(*site));
    }
  }
  return frames;
}

std::vector<Traceback> tracebacks(const model::JobModel& job) {
  std::vector<Traceback> out;
  for (const LogStream& stream : log_streams(job)) {
    bool inside = false;
    bool chained = false;
    bool of_batch = false;
    std::string_view heading;
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const std::string_view line = stream[i].text;
      if (begins_traceback(line)) {
        inside = true;
        of_batch = false;
        heading = i == 0 ? std::string_view() : stream[i - 1].text;
      } else if (inside && ends_traceback(line)) {
        inside = false;
        if (chained && !is_consequence(line)) {
          out.pop_back();  // it was caught; this is how the program ended
        }
        chained = false;
        out.push_back({.rank = stream[i].rank,
                       .time = stream[i].time,
                       .log = stream[i].log,
                       .number = stream[i].number,
                       .place = user_place_above(stream, i),
                       .frames = user_frames_above(stream, i),
                       .exception = std::string(base::trim(line)),
                       .of_thread = heading.starts_with("Exception in thread"),
                       .of_batch = of_batch,
                       .ignored = heading.starts_with("Exception ignored in")});
      } else if (inside && line.find("in _try_get_data") != std::string_view::npos) {
        of_batch = true;
      } else if (chains(line)) {
        chained = !out.empty() && out.back().rank == stream[i].rank;
      }
    }
  }
  return out;
}

bool earlier(const Traceback& a, const Traceback& b) {
  if (a.time && b.time && *a.time != *b.time) {
    return *a.time < *b.time;
  }
  return a.log == b.log && a.number < b.number;
}

bool cleans_up_after_exception(const model::JobModel& job, model::Rank rank,
                               const std::vector<model::CallSite>& callers) {
  if (job.logs.empty()) {
    return false;
  }
  const bool in_finally =
      std::any_of(callers.begin(), callers.end(), [&job](const model::CallSite& site) {
        const auto around = python_source::enclosing(lines_of(job, site.file), site.line);
        return std::any_of(around.begin(), around.end(), [](const auto& block) {
          return block.kind == python_source::BlockKind::kFinally;
        });
      });
  const auto all = in_finally ? tracebacks(job) : std::vector<Traceback>{};
  return std::any_of(all.begin(), all.end(), [rank](const Traceback& one) {
    return one.rank == rank && !one.of_thread && !one.ignored && one.place.known() &&
           !is_consequence(one.exception);
  });
}

}  // namespace ddpdoctor::detectors
