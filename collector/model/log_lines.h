// SPDX-License-Identifier: Apache-2.0
// The prefixes that launchers, CI systems and loggers add to a line: the rank that wrote it and the
// time.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "collector/model/rank_set.h"

namespace ddpdoctor::model {

/// Precedes the path of a log in the coverage.
inline constexpr std::string_view kReadAsLog = "the log ";

/// A line of a log without its prefixes. `text` points into the log.
struct LogLine {
  std::string_view text;
  std::optional<Rank> rank;
  std::optional<double> time;  // seconds since the epoch as written: the time zone is unknown
  std::string_view whom = {};  // "EngineCore_DP0 pid=412", the innermost label of an actor
};

/// Removes, in any order: "2026-11-20T12:34:56.789Z ", "[2026-11-20 12:34:56,789] ", "[rank3]: ",
/// "[rank: 3] ", "rank 3: ", "[default3]:", "[1,3]<stderr>:", "rank3 | ", "(VllmWorker rank=3
/// pid=7) ", "ERROR 05-27 23:44:35 [core.py:708] ", "opt-1_3b.0 [stderr] ". A number alone is not a
/// rank.
LogLine read_log_line(std::string_view line);

/// The length of "opt-1_3b.0 [stderr] " of milabench and its like, the name and number of a command
/// and its stream; 0 if the line does not begin so.
std::size_t length_of_stream_tag(std::string_view line);

/// The line contains a word that programs use for an error, a warning or a failure.
bool tells_trouble(std::string_view line);

}  // namespace ddpdoctor::model
