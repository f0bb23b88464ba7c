// SPDX-License-Identifier: Apache-2.0
// Each of the forms is recognized by the whole text: one line alone does not show that it was
// broken, or that its indentation is lost.
#include "collector/imports/logs/as_pasted.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <vector>

#include "base/text.h"
#include "collector/imports/logs/clock_column.h"
#include "collector/imports/logs/hard_wraps.h"
#include "collector/imports/logs/joined_lines.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

/// "-- | -- | --", "|---|:--:|": below the first row of a table.
bool is_delimiter_row(std::string_view line) {
  return line.find("--") != line.npos && line.find('|') != line.npos &&
         line.find_first_not_of("-|: \t\r") == line.npos;
}

/// The cells that are not empty, from the first to the last, with what stands between them.
std::string_view row_of(std::string_view line) {
  const auto edge = [](char c) { return c == '|' || c == ' ' || c == '\t' || c == '\r'; };
  const bool spaced = line.find(" |") != line.npos || line.find("| ") != line.npos;
  if (!spaced && !line.starts_with('|')) {
    return line;
  }
  const auto first = std::find_if_not(line.begin(), line.end(), edge);
  line.remove_prefix(static_cast<std::size_t>(first - line.begin()));
  const auto last = std::find_if_not(line.rbegin(), line.rend(), edge);
  line.remove_suffix(static_cast<std::size_t>(last - line.rbegin()));
  return line;
}

/// A row that begins with a cell for the time of the log service.
struct TimedRow {
  std::string_view time;
  std::string_view text;
};

std::optional<TimedRow> timed_row(std::string_view row) {
  const std::size_t bar = row.substr(0, kLongestLogLine).find(" | ");
  const std::string_view cell = row.substr(0, bar == row.npos ? 0 : bar);
  const auto told = model::read_log_line(cell);
  if (!told.time || !base::trim(told.text).empty()) {
    return std::nullopt;
  }
  return TimedRow{.time = cell, .text = row.substr(bar + 3)};
}

bool has_own_time(const std::vector<std::string_view>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](std::string_view row) {
    const auto timed = timed_row(row);
    std::string_view text = timed ? timed->text.substr(0, kLongestLogLine) : std::string_view();
    take_prefix(text, "[");
    return timed && model::read_log_line(text).time.has_value();
  });
}

/// "RuntimeError: no", "torch.cuda.OutOfMemoryError", at the beginning of a line.
bool is_exception_line(std::string_view line) {
  const std::size_t end = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, end);
  const bool one_word = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  });
  constexpr std::array<std::string_view, 4> kEndings = {"Error", "Exception", "Interrupt", "Exit"};
  return one_word && std::any_of(kEndings.begin(), kEndings.end(),
                                 [name](auto ending) { return name.ends_with(ending); });
}

bool is_heading_of_frames(std::string_view line) {
  return line.find("Traceback (most recent call last)") != line.npos ||
         line.find("(most recent call first):") != line.npos;
}

bool is_bare_frame(std::string_view text) {
  return text.starts_with("File \"") && text.find("\", line ") != text.npos;
}

/// Adds the indentation to the lines of the tracebacks of one rank.
class Indenter {
 public:
  /// What to insert before the line's own text.
  std::string_view before(std::string_view text) {
    if (is_heading_of_frames(text)) {
      inside_ = true;
      lost_ = false;
      return {};
    }
    if (!inside_ || text.empty() || text.front() == ' ') {
      return {};
    }
    if (is_bare_frame(text)) {
      lost_ = true;
      source_due_ = text.find(", in ") != text.npos;  // faulthandler shows no source lines
      return "  ";
    }
    const bool marks = text.find_first_not_of("^~ ") == text.npos;
    if (lost_ && (marks || (source_due_ && !is_exception_line(text)))) {
      source_due_ = source_due_ && marks;
      return "    ";
    }
    inside_ = false;
    return {};
  }

 private:
  bool inside_ = false;
  bool lost_ = false;        // the newest frame had no indentation
  bool source_due_ = false;  // of the newest frame
};

/// A line with a time, and those without one that follow it.
struct Entry {
  double time = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

}  // namespace

std::optional<std::string> rows_as_lines(std::string_view text) {
  auto lines = base::split(text, '\n');
  if (text.find("--") == text.npos || std::none_of(lines.begin(), lines.end(), is_delimiter_row)) {
    return std::nullopt;
  }
  std::erase_if(lines, is_delimiter_row);
  std::transform(lines.begin(), lines.end(), lines.begin(), row_of);
  const bool twice = has_own_time(lines);
  std::string out;
  out.reserve(text.size());
  for (const std::string_view row : lines) {
    const auto timed = timed_row(row);
    if (timed && !twice) {
      out += timed->time;
      out += ' ';
    }
    out += timed ? timed->text : row;
    out += '\n';
  }
  return out;
}

std::optional<std::string> with_indented_frames(std::string_view text) {
  if (text.find("File \"") == text.npos) {
    return std::nullopt;
  }
  std::map<std::optional<model::Rank>, Indenter> indenters;
  bool any = false;
  std::string out;
  out.reserve(text.size());
  for (const std::string_view line : base::split(text, '\n')) {
    const model::LogLine own = model::read_log_line(line.substr(0, kLongestLogLine));
    const auto prefix = static_cast<std::size_t>(own.text.data() - line.data());
    const std::string_view indent = indenters[own.rank].before(own.text);
    any = any || !indent.empty();
    out += line.substr(0, prefix);
    out += indent;
    out += line.substr(prefix);
    out += '\n';
  }
  out.pop_back();
  return any ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::string> with_lost_heading(std::string_view text) {
  std::string_view prefix;
  bool frames = false;
  for (const std::string_view line : base::split(text, '\n')) {
    const std::string_view own = model::read_log_line(line.substr(0, kLongestLogLine)).text;
    const std::string_view words = base::trim(own);
    const bool frame = words.starts_with("File \"") && words.find(", in ") != words.npos;
    if (!frames && !frame && !words.empty()) {
      return std::nullopt;
    }
    prefix = frame && !frames ? line.substr(0, line.size() - own.size()) : prefix;
    frames = frames || frame;
    if (!words.empty() && !own.starts_with(' ')) {
      return frames && is_exception_line(own)
                 ? std::optional(std::string(prefix) + "Traceback (most recent call last):\n" +
                                 std::string(text))
                 : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<std::string> oldest_first(std::string_view text) {
  constexpr std::size_t kLeastSteps = 3;
  const auto lines = base::split(text, '\n');
  std::vector<Entry> entries;
  std::size_t back = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto time = model::read_log_line(lines[i].substr(0, kLongestLogLine)).time;
    if (time && !entries.empty() && *time > entries.back().time) {
      return std::nullopt;
    }
    if (time) {
      back += !entries.empty() && *time < entries.back().time ? 1 : 0;
      entries.push_back({.time = *time, .begin = i, .end = i + 1});
    } else if (!entries.empty()) {
      entries.back().end = i + 1;
    }
  }
  if (back < kLeastSteps) {
    return std::nullopt;
  }
  std::string out;
  const auto add = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      out += lines[i];
      out += '\n';
    }
  };
  add(0, entries.front().begin);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    add(entry->begin, entry->end);
  }
  return out;
}

std::optional<std::string> as_written(std::string_view text) {
  std::optional<std::string> out;
  for (auto* const step : {rows_as_lines, without_joined_lines, without_hard_wraps, oldest_first,
                           without_clock_column, with_indented_frames, with_lost_heading}) {
    if (auto changed = step(out ? std::string_view(*out) : text)) {
      out = std::move(changed);
    }
  }
  return out;
}

}  // namespace ddpdoctor::imports
