// SPDX-License-Identifier: Apache-2.0
// One space after a prefix belongs to the prefix; the rest is the line's own indentation, which
// tracebacks need.
#include "collector/model/log_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

#include "base/lower.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::model {
namespace {

constexpr int kMostPrefixes = 8;  // CI timestamp, torchrun's tee, torch's own, a logger's, …

bool digit(char c) {
  return c >= '0' && c <= '9';
}

bool same_letter(char a, char b) {
  return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b);
}

/// `word` must be lower case.
bool starts_with_word(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) {
    return false;
  }
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (!same_letter(text[i], word[i])) {
      return false;
    }
  }
  return true;
}

/// Removes a number from the front of the text.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || value < 0) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// A number with exactly `count` digits.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) {
    return std::nullopt;
  }
  int value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!digit(text[i])) {
      return std::nullopt;
    }
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar; years are counted from March.
std::int64_t days_of(int year, int month, int day) {
  const std::int64_t y = month <= 2 ? year - 1 : year;
  const std::int64_t era = y / 400;
  const std::int64_t of_era = y - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/// "2026-11-20T12:34:56.789", or with a space instead of T; a point or comma before the fraction;
/// seconds are optional.
std::optional<double> take_moment(std::string_view& text) {
  std::string_view rest = text;
  const auto year = take_digits(rest, 4);
  const bool dated = year && (take(rest, '-') || take(rest, '/'));
  const auto month = dated ? take_digits(rest, 2) : std::nullopt;
  const bool monthly = month && (take(rest, '-') || take(rest, '/'));
  const auto day = monthly ? take_digits(rest, 2) : std::nullopt;
  const bool daily = day && (take(rest, 'T') || take(rest, ' ') || take(rest, '_'));
  const auto hour = daily ? take_digits(rest, 2) : std::nullopt;
  const auto minute = hour && take(rest, ':') ? take_digits(rest, 2) : std::nullopt;
  const bool whole_minute = minute && rest.starts_with(' ');
  const auto second = whole_minute                ? std::optional(0)
                      : minute && take(rest, ':') ? take_digits(rest, 2)
                                                  : std::nullopt;
  if (!second || *year < 1970 || *month < 1 || *month > 12) {
    return std::nullopt;
  }
  double seconds = static_cast<double>(days_of(*year, *month, *day)) * 86400 + *hour * 3600.0 +
                   *minute * 60.0 + *second;
  if (take(rest, '.') || take(rest, ',')) {
    for (double unit = 0.1; !rest.empty() && digit(rest.front()); unit /= 10) {
      seconds += unit * (rest.front() - '0');
      rest.remove_prefix(1);
    }
  }
  text = rest;
  return seconds;
}

/// "Z", "+01:00", "-0800".
void take_zone(std::string_view& text) {
  if (take(text, 'Z') || text.size() < 5 || (text.front() != '+' && text.front() != '-')) {
    return;
  }
  std::string_view rest = text.substr(1);
  const auto hours = take_digits(rest, 2);
  take(rest, ':');
  if (hours && take_digits(rest, 2)) {
    text = rest;
  }
}

std::optional<double> take_time(std::string_view& text) {
  std::string_view rest = text;
  while (take(rest, ' ')) {  // only blanks precede the time, so nothing is lost
  }
  const bool bracket = take(rest, '[');
  const auto moment = take_moment(rest);
  if (!moment) {
    return std::nullopt;
  }
  take_zone(rest);
  if (bracket && !take(rest, ']')) {
    return std::nullopt;
  }
  take(rest, ':');
  take(rest, ' ');
  text = rest;
  return moment;
}

/// "[rank3]", "[rank: 3]", "[RANK 3]", "[default3]": inside brackets or at the start of a line.
std::optional<int> take_rank_word(std::string_view& text) {
  constexpr std::array<std::string_view, 4> kWords = {"global_rank", "rank", "default",
                                                      "local_rank"};
  for (const std::string_view word : kWords) {
    if (!starts_with_word(text, word)) {
      continue;
    }
    std::string_view rest = text.substr(word.size());
    const bool apart = take(rest, ':') || take(rest, '=') || take(rest, '_') || take(rest, '-');
    static_cast<void>(apart);
    take(rest, ' ');
    const auto number = take_number(rest);
    if (number && *number < kMaxWorldSize) {
      text = rest;
      return number;
    }
  }
  return std::nullopt;
}

/// "[1,3]<stderr>:" of Open MPI: job number and rank; "[3]<stderr>:" of horovodrun.
std::optional<int> take_mpi_tag(std::string_view& text) {
  std::string_view rest = text;
  auto rank = take(rest, '[') ? take_number(rest) : std::nullopt;
  if (rank && take(rest, ',')) {
    rank = take_number(rest);
  } else if (!rest.starts_with("]<stderr>:") && !rest.starts_with("]<stdout>:")) {
    return std::nullopt;
  }
  if (!rank || *rank >= kMaxWorldSize || !take(rest, ']') || !take(rest, '<')) {
    return std::nullopt;
  }
  const std::size_t end = rest.find(">:");
  if (end == std::string_view::npos || end > 10) {
    return std::nullopt;
  }
  text = rest.substr(end + 2);
  return rank;
}

std::optional<int> take_rank(std::string_view& text) {
  if (const auto rank = take_mpi_tag(text)) {
    return rank;
  }
  std::string_view rest = text;
  const bool bracket = take(rest, '[');
  const bool round = !bracket && take(rest, '(');
  const auto rank = take_rank_word(rest);
  if (!rank) {
    return std::nullopt;
  }
  if (bracket || round) {
    if (!take(rest, bracket ? ']' : ')')) {
      return std::nullopt;
    }
    if (take(rest, ':') && text.starts_with("[default")) {
      text = rest;  // torchrun's tee adds no space: what follows belongs to the line
      return rank;
    }
  } else {
    while (take(rest, ' ')) {
    }
    if (!take(rest, ':') && !take(rest, '|')) {
      return std::nullopt;  // "rank 3 failed": a sentence, not a prefix
    }
  }
  take(rest, ' ');
  text = rest;
  return rank;
}

/// The stream marker after the time of GitLab ("00O ", "01E+") or of a container runtime ("stderr F
/// ").
bool take_stream(std::string_view& text) {
  for (const std::string_view word : {"stdout F ", "stderr F ", "stdout P ", "stderr P "}) {
    if (text.starts_with(word)) {
      text.remove_prefix(word.size());
      return true;
    }
  }
  const bool gitlab = text.size() >= 4 && digit(text[0]) && digit(text[1]) &&
                      (text[2] == 'O' || text[2] == 'E') && (text[3] == ' ' || text[3] == '+');
  text.remove_prefix(gitlab ? 4 : 0);
  return gitlab;
}

/// "12:34:56  " of Jenkins: without a date the time is unknown.
bool take_clock(std::string_view& text) {
  std::string_view rest = text;
  const bool bracket = take(rest, '[');
  const bool clock = take_digits(rest, 2) && take(rest, ':') && take_digits(rest, 2) &&
                     take(rest, ':') && take_digits(rest, 2);
  if (!clock || (bracket && !take(rest, ']')) || !take(rest, ' ')) {
    return false;
  }
  take(rest, ' ');
  text = rest;
  return true;
}

/// "ERROR 05-27 23:44:35 [core.py:708] ", "INFO 01-03 18:47:35 core.py:48] " of vLLM: without a
/// year the time is unknown.
bool take_logger(std::string_view& text) {
  constexpr std::size_t kLongestPlace = 100;
  constexpr std::array<std::string_view, 5> kLevels = {"DEBUG ", "INFO ", "WARNING ", "ERROR ",
                                                       "CRITICAL "};
  std::string_view rest = text;
  for (const std::string_view level : kLevels) {
    if (rest.starts_with(level)) {
      rest.remove_prefix(level.size());
      break;
    }
  }
  const bool dated = rest.size() < text.size() && take_digits(rest, 2) && take(rest, '-') &&
                     take_digits(rest, 2) && take(rest, ' ') && take_digits(rest, 2) &&
                     take(rest, ':') && take_digits(rest, 2) && take(rest, ':') &&
                     take_digits(rest, 2);
  const std::size_t space = dated ? rest.find(' ') : rest.npos;  // after the milliseconds
  const std::size_t end = rest.substr(0, kLongestPlace).find(']');
  if (space == rest.npos || end == rest.npos || end < space ||
      rest.substr(0, end).find(".py:") == rest.npos) {
    return false;
  }
  text = rest.substr(end + 1);
  take(text, ' ');
  return true;
}

/// "(VllmWorker rank=3 pid=7) ", "(worker6, rank=6, pid=7, ip=10.0.0.1) ": extracts the rank.
std::optional<int> rank_of_whom(std::string_view label) {
  const std::size_t at = label.find(" rank=");
  std::string_view rest = at == label.npos ? std::string_view() : label.substr(at + 6);
  const auto rank = take_number(rest);
  const bool ends = rest.empty() || rest.front() == ' ' || rest.front() == ',';
  return rank && *rank < kMaxWorldSize && ends ? rank : std::nullopt;
}

/// "[pod/trainer-0/torch] " of kubectl, "(RayTrainWorker pid=7, ip=10.0.0.1) " of Ray, "(VllmWorker
/// rank=3 pid=7) " of vLLM.
bool take_whom(std::string_view& text, std::optional<Rank>& rank, std::string_view& whom) {
  const bool pod = text.starts_with("[pod/");
  const bool ray = text.starts_with('(');
  const std::size_t end = pod || ray ? text.substr(0, 200).find(pod ? "] " : ") ") : text.npos;
  if (end == std::string_view::npos ||
      (ray && text.substr(0, end).find(" pid=") == std::string_view::npos)) {
    return false;
  }
  const auto named = ray ? rank_of_whom(text.substr(0, end)) : std::nullopt;
  rank = named ? named : rank;
  whom = ray ? text.substr(1, end - 1) : whom;
  text.remove_prefix(end + 2);
  return true;
}

}  // namespace

std::size_t length_of_stream_tag(std::string_view line) {
  constexpr std::size_t kLongestTag = 100;
  const std::string_view head = line.substr(0, kLongestTag);
  const std::size_t end = head.find(' ');
  const std::string_view name = head.substr(0, end == head.npos ? 0 : end);
  const std::size_t dot = name.rfind('.');
  const bool numbered = dot != name.npos && dot > 0 && dot + 1 < name.size() &&
                        std::all_of(name.begin() + static_cast<std::ptrdiff_t>(dot) + 1, name.end(),
                                    [](char c) { return digit(c); });
  for (const std::string_view stream : {" [stderr]", " [stdout]"}) {
    if (numbered && line.substr(end).starts_with(stream)) {
      const std::size_t behind = end + stream.size();
      return behind + (line.substr(behind).starts_with(' ') ? 1 : 0);
    }
  }
  return 0;
}

LogLine read_log_line(std::string_view line) {
  LogLine out{.text = line, .rank = {}, .time = {}};
  if (out.text.ends_with('\r')) {
    out.text.remove_suffix(1);
  }
  for (int i = 0; i < kMostPrefixes; ++i) {
    if (const auto time = take_time(out.text)) {
      out.time = out.time ? out.time : time;
    } else if (const auto rank = take_rank(out.text)) {
      out.rank = rank;  // torchrun's tee names the local rank, torch's own prefix the global rank:
                        // the inner prefix wins
    } else if (const std::size_t tag = length_of_stream_tag(out.text); tag > 0) {
      out.text.remove_prefix(tag);
    } else if (!(out.time && take_stream(out.text)) && !take_clock(out.text) &&
               !take_whom(out.text, out.rank, out.whom) && !take_logger(out.text)) {
      break;
    }
  }
  return out;
}

bool tells_trouble(std::string_view line) {
  // Optional parts of NCCL that are not installed, corrected errors, and counters of none.
  constexpr std::array<std::string_view, 11> kHarmless = {"net/plugin",
                                                          "tuner/plugin",
                                                          "profiler/plugin",
                                                          "gin/plugin",
                                                          "libibverbs",
                                                          "libmlx5",
                                                          "severity=corrected",
                                                          "corrected error received",
                                                          "x packets:",
                                                          "x errors ",
                                                          "nccl_debug set by environment to"};
  constexpr std::size_t kLongest = 4096;
  constexpr std::array<std::string_view, 14> kWords = {
      "error",  "warn",   "fail",      "fatal",     "abort",      "timeout",       "timed out",
      "denied", "killed", "exception", "unable to", "could not ", "no available ", "refused"};
  const std::string lower = base::lower(line.substr(0, kLongest));
  const auto holds = [&lower](std::string_view word) { return lower.find(word) != lower.npos; };
  return std::any_of(kWords.begin(), kWords.end(), holds) &&
         std::none_of(kHarmless.begin(), kHarmless.end(), holds);
}

}  // namespace ddpdoctor::model
