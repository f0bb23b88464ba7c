// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/traceback_ranks.h"

#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/python_traceback.h"
#include "collector/imports/stack_dumps/ranks_of_pids.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostLines = 2000;  // of one traceback

/// The rank in which torch raised this exception.
std::optional<std::int64_t> rank_in_exception(std::string_view line) {
  const auto aborted = number_behind(line, "NCCL communicator was aborted on rank ", kMaxRank);
  return aborted ? aborted
                 : number_behind(line, "mismatch between collectives on ranks. Rank ", kMaxRank);
}

/// The index of the exception's line below a heading; nullopt if other lines come between.
std::optional<std::size_t> end_of_traceback(const std::vector<std::string_view>& lines,
                                            std::size_t heading) {
  for (std::size_t i = heading + 1; i < lines.size() && i - heading < kMostLines; ++i) {
    if (lines[i].empty() || model::read_log_line(lines[i].substr(0, kLongestLogLine)).rank) {
      return std::nullopt;
    }
    if (lines[i].front() != ' ') {
      return i;
    }
  }
  return std::nullopt;
}

/// The rank of the line before a heading that reports an error: a logger writes the traceback below
/// its message, without the prefix.
std::optional<std::int64_t> rank_in_message_above(const std::vector<std::string_view>& lines,
                                                  std::size_t heading) {
  if (heading == 0) {
    return std::nullopt;
  }
  const model::LogLine above = model::read_log_line(lines[heading - 1].substr(0, kLongestLogLine));
  return above.rank && model::tells_trouble(above.text) ? std::optional(std::int64_t{*above.rank})
                                                        : std::nullopt;
}

/// "Unhandled exception <class 'RuntimeError'> in thread <…>, proc 6474." shortly above a heading,
/// where another line has this pid and a rank.
std::optional<std::int64_t> rank_of_process_above(const std::vector<std::string_view>& lines,
                                                  std::size_t heading) {
  constexpr std::size_t kNear = 12;
  for (std::size_t i = heading; i > 0 && heading - i < kNear; --i) {
    const std::string_view line = lines[i - 1].substr(0, kLongestLogLine);
    const auto pid =
        line.find("xception") == line.npos ? std::nullopt : number_behind(line, "proc ", kMaxPid);
    if (pid) {
      const auto rank = rank_of_pid(lines, *pid);
      return rank ? std::optional(std::int64_t{*rank}) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> with_ranks_of_tracebacks(std::string_view text) {
  if (text.find(kTracebackHeading) == text.npos) {
    return std::nullopt;
  }
  const auto lines = base::split(text, '\n');
  std::string out;
  bool any = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto end =
        lines[i].starts_with(kTracebackHeading) ? end_of_traceback(lines, i) : std::nullopt;
    auto rank = end ? rank_in_exception(lines[*end]) : std::nullopt;
    rank = end && !rank ? rank_in_message_above(lines, i) : rank;
    rank = end && !rank ? rank_of_process_above(lines, i) : rank;
    const std::size_t last = rank ? *end : i;
    for (; i < last; ++i) {
      out += fmt::format("[rank{}]: {}\n", *rank, lines[i]);
    }
    any = any || rank;
    out += rank ? fmt::format("[rank{}]: ", *rank) : std::string();
    out += lines[i];
    out += '\n';
  }
  if (!any) {
    return std::nullopt;
  }
  out.pop_back();
  return out;
}

}  // namespace ddpdoctor::imports
