// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/tracebacks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <utility>

#include "base/path_ends.h"
#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/raiser_by_elimination.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/detectors/evidence/traceback_reader.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostBytes = 4U << 20U;   // bytes of one log; a crash writes kilobytes
constexpr std::size_t kLongestTraceback = 400;  // lines; Python itself shortens deep recursion

/// "-- Process 1 terminated with the following error:": torch's spawn re-raises an exception of its
/// child.
std::optional<int> spawned_child(std::string_view line) {
  constexpr std::string_view kStart = "-- Process ";
  line = pytest_message(line).value_or(line);
  line.remove_prefix(indentation(line));
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

/// "____ test_two ____", "==== short test summary info ====".
bool begins_pytest_section(std::string_view line) {
  return line.starts_with("____") || line.starts_with("====");
}

/// "  rank      : 3 (local_rank: 1)" in torchrun's table of failures: the following lines belong to
/// that rank.
std::optional<int> rank_of_table(std::string_view line) {
  constexpr std::string_view kRank = "  rank      : ";
  return line.starts_with(kRank) ? leading_number(line.substr(kRank.size())) : std::nullopt;
}

/// "----------Begin global rank 3 STDERR----------" of composer: the output of one rank follows.
std::optional<int> rank_of_section(std::string_view line) {
  constexpr std::string_view kBegin = "-Begin global rank ";
  const std::size_t at = line.find(kBegin);
  return at == line.npos ? std::nullopt : leading_number(line.substr(at + kBegin.size()));
}

bool ends_table_entry(std::string_view line) {
  return line.starts_with("----------") || line.starts_with("==========") ||
         (line.starts_with('[') && line.ends_with("]:"));
}

/// The first line after the frames that is not indented.
bool ends_traceback(std::string_view line) {
  return !line.empty() && line.front() != ' ' && !begins_traceback(line);
}

/// "During handling of the above exception, …" precedes this line: only the traceback before it
/// shows where a raising signal handler was called.
bool follows_another(const LogStream& stream, std::size_t index) {
  while (index > 0 && base::trim(stream[index - 1].text).empty()) {
    --index;
  }
  return index > 0 && chains_tracebacks(stream[index - 1].text);
}

}  // namespace

std::vector<LogStream> log_streams(const model::JobModel& job) {
  std::vector<LogStream> out;
  for (const model::Log& log : job.logs) {
    std::map<std::optional<model::Rank>, LogStream> by_rank;
    std::size_t number = 0;
    std::optional<int> child;
    std::optional<int> table;
    for (const std::string_view line : base::split(last_part(log.text), '\n')) {
      model::LogLine told = model::read_log_line(line);
      const auto of_child = spawned_child(told.text);
      child = of_child ? of_child : begins_pytest_section(told.text) ? std::nullopt : child;
      auto of_table = rank_of_table(told.text);
      of_table = of_table ? of_table : rank_of_section(told.text);
      table = of_table ? of_table : ends_table_entry(told.text) ? std::nullopt : table;
      if (table && !told.rank && !log.rank) {
        told.rank = table;
      } else if (child && !told.rank && !log.rank) {
        told.rank = child;
      }
      LogStream& stream = by_rank[told.rank];
      const auto before = stream.empty() ? std::nullopt : stream.back().time;
      stream.push_back({.text = without_margin(told.text),
                        .rank = told.rank ? told.rank : log.rank,
                        .time = told.time ? told.time : before,
                        .log = static_cast<std::size_t>(&log - job.logs.data()),
                        .number = ++number,
                        .whom = told.whom});
    }
    for (auto& [rank, lines] : by_rank) {
      out.push_back(std::move(lines));
    }
  }
  return out;
}

model::CallSite user_place_above(const LogStream& stream, std::size_t index) {
  model::CallSite installed;
  if (pytest_message(stream[index].text)) {
    const auto frames = pytest_frames(stream, index).frames;
    const auto own = std::find_if(frames.rbegin(), frames.rend(), [](const auto& frame) {
      return model::is_user_file(frame.file);
    });
    if (own != frames.rend()) {
      return *own;
    }
  }
  for (std::size_t back = 0; back < kLongestTraceback && back <= index; ++back) {
    const std::string_view line = stream[index - back].text;
    const auto site = traceback_place(line);
    if (site && model::is_user_file(site->file)) {
      return *site;
    }
    if (site && !installed.known() && may_be_users_file(site->file)) {
      installed = *site;
    }
    // A worker's own traceback is inside that of the process that waits for its batch.
    const bool inner = line.find("Original Traceback") != std::string_view::npos;
    if (back > 0 && begins_traceback(line) && !inner && !follows_another(stream, index - back)) {
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

namespace {

/// Torch writes rank prefixes only since 2.2. In an older log, the one rank that failed by itself
/// according to its launcher raised the exceptions that are not consequences of another failure;
/// the same applies to several ranks that raised at one line.
void name_those_that_failed(const model::JobModel& job, std::vector<Traceback>& all) {
  model::RankSet failed;
  for (const model::Process* process : processes(job)) {
    const auto exit = process->rank ? exit_of(job, *process) : std::nullopt;
    if (exit && !exit->signal && exit->status.value_or(0) != 0) {
      failed.insert(*process->rank);
    }
  }
  const auto own = [](const Traceback& one) {
    return one.place.known() && !one.of_thread && !one.ignored && !is_consequence(one);
  };
  const bool unnamed =
      std::none_of(all.begin(), all.end(), [](const Traceback& one) { return one.rank; });
  std::vector<Traceback*> raised;
  for (Traceback& one : all) {
    if (own(one)) {
      raised.push_back(&one);
    }
  }
  const bool one_place = std::all_of(raised.begin(), raised.end(), [&raised](const Traceback* one) {
    return one->place == raised.front()->place;
  });
  if (!unnamed || raised.size() != failed.size() || !one_place) {
    return;
  }
  for (std::size_t i = 0; i < raised.size(); ++i) {
    raised[i]->rank = failed.values()[i];
  }
}

}  // namespace

std::vector<Traceback> tracebacks(const model::JobModel& job) {
  std::vector<Traceback> out;
  for (const LogStream& stream : log_streams(job)) {
    auto read = read_tracebacks(stream);
    std::copy_if(std::move_iterator(read.begin()), std::move_iterator(read.end()),
                 std::back_inserter(out), [](const Traceback& one) { return !one.of_launcher; });
  }
  if (job.ended) {
    name_those_that_failed(job, out);
  }
  name_raiser_by_elimination(job, out);
  return out;
}

std::vector<Traceback> tracebacks_of_launchers(const model::JobModel& job) {
  constexpr std::array<std::string_view, 3> kOfRanks = {"ChildFailedError", "SignalException",
                                                        "CalledProcessError"};
  std::vector<Traceback> out;
  for (const LogStream& stream : log_streams(job)) {
    for (Traceback& one : read_tracebacks(stream)) {
      if (one.of_launcher && !base::contains_any(one.exception, kOfRanks)) {
        out.push_back(std::move(one));
      }
    }
  }
  return out;
}

bool starts_without_guard(const Traceback& traceback) {
  return traceback.raiser.function == "_check_not_importing_main" &&
         traceback.raiser.file.ends_with("multiprocessing/spawn.py");
}

bool is_behind(const Traceback& traceback, const std::vector<model::CallSite>& callers) {
  return std::any_of(callers.begin(), callers.end(), [&traceback](const model::CallSite& now) {
    return std::any_of(
        traceback.frames.begin(), traceback.frames.end(), [&now](const auto& passed) {
          return now.function == passed.function && now.line > passed.line &&
                 base::path_ends_with(passed.file, now.file);  // py-spy shows the end of a path
        });
  });
}

bool rewords(const Traceback& first, const Traceback& second) {
  const std::string& source = second.source;
  return first.raiser.file == second.raiser.file &&
         first.raiser.function == second.raiser.function &&
         (source.starts_with("raise ") || source.starts_with('\'') || source.starts_with('"'));
}

bool joins_processes(const Traceback& traceback) {
  return traceback.raiser.function == "join" &&
         traceback.raiser.file.ends_with("torch/multiprocessing/spawn.py");
}

namespace {

/// The process at the other end of a pipe of multiprocessing has ended.
bool lost_its_pipe(const Traceback& traceback) {
  return traceback.raiser.file.ends_with("multiprocessing/connection.py") &&
         traceback.exception.starts_with("EOFError");
}

}  // namespace

bool is_consequence(const Traceback& traceback) {
  return traceback.after_timeout || joins_processes(traceback) || lost_its_pipe(traceback) ||
         is_consequence(traceback.exception);
}

bool earlier(const Traceback& a, const Traceback& b) {
  if (a.time && b.time && *a.time != *b.time) {
    return *a.time < *b.time;
  }
  return a.log == b.log && a.number < b.number;
}

namespace {

bool failed_while_cleaning_up(const std::vector<Traceback>& all, const Traceback& traceback) {
  return traceback.of_cleanup &&
         std::any_of(all.begin(), all.end(), [&traceback](const Traceback& other) {
           return !other.of_cleanup && !other.ignored && earlier(other, traceback);
         });
}

bool refers_to_another(const Traceback& traceback) {
  constexpr std::array<std::string_view, 4> kWords = {
      "stack trace above", "See stack trace", "see the error messages above", "root cause above"};
  return std::any_of(kWords.begin(), kWords.end(), [&traceback](std::string_view words) {
    return traceback.exception.find(words) != std::string::npos;
  });
}

/// The same exception of this writer also has a traceback that leads from this line further inside:
/// processes that write into one stream mix their frames, or a caller raised it again.
bool is_told_from_further_inside(const std::vector<Traceback>& all, const Traceback& one) {
  const auto passes = [](const Traceback& traceback, const model::CallSite& place) {
    return std::find(traceback.frames.begin(), traceback.frames.end(), place) !=
           traceback.frames.end();
  };
  return one.place.known() && !one.exception.empty() &&
         std::any_of(all.begin(), all.end(), [&](const Traceback& other) {
           return other.log == one.log && other.rank == one.rank && other.writer == one.writer &&
                  other.exception == one.exception && passes(other, one.place) &&
                  !passes(one, other.place);
         });
}

}  // namespace

void drop_echoes(std::vector<Traceback>& all) {
  const std::vector<Traceback> told = all;
  const bool said = std::any_of(told.begin(), told.end(), [](const Traceback& one) {
    return !is_consequence(one) && !refers_to_another(one);
  });
  std::erase_if(all, [&](const Traceback& one) {
    return failed_while_cleaning_up(told, one) || (said && refers_to_another(one)) ||
           is_told_from_further_inside(told, one);
  });
}

bool raised_before(const std::vector<Traceback>& all, const Traceback& traceback) {
  return std::any_of(all.begin(), all.end(), [&traceback](const Traceback& other) {
    return other.rank != traceback.rank && other.place != traceback.place &&
           earlier(other, traceback);
  });
}

bool was_interrupted(const model::JobModel& job) {
  const auto all = processes(job);
  return !all.empty() && std::all_of(all.begin(), all.end(), [](const model::Process* process) {
    return !process->threads.empty() &&
           process->threads.front().capture.ends_with(model::kOfInterrupt);
  });
}

bool cleans_up_after_exception(const model::JobModel& job, model::Rank rank,
                               const std::vector<model::CallSite>& callers) {
  if (job.logs.empty()) {
    return false;
  }
  const bool in_finally =
      std::any_of(callers.begin(), callers.end(), [&job](const model::CallSite& site) {
        const auto around = program::enclosing(lines_of(job, site.file), site.line);
        return std::any_of(around.begin(), around.end(), [](const auto& block) {
          return block.kind == program::BlockKind::kFinally;
        });
      });
  const auto all = in_finally ? tracebacks(job) : std::vector<Traceback>{};
  return std::any_of(all.begin(), all.end(), [rank](const Traceback& one) {
    return one.rank == rank && !one.of_thread && !one.ignored && one.place.known() &&
           !is_consequence(one);
  });
}

}  // namespace ddpdoctor::detectors
