// SPDX-License-Identifier: Apache-2.0
// Each of the forms is recognized by the whole text: one line alone does not show that it was
// broken, or that its indentation is lost.
#include "collector/imports/logs/as_pasted.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view without_end(std::string_view line) {
  return line.substr(0, line.find_last_not_of(kBlanks) + 1);
}

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

/// Characters, not bytes, of UTF-8.
std::size_t width_of(std::string_view line) {
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

/// The line begins a message: it has a prefix of a logger, or is the first of a traceback.
bool begins_message(std::string_view line) {
  line = line.substr(0, kLongestLogLine);
  return line.starts_with('[') || line.starts_with("Traceback") || line.starts_with("  File \"") ||
         line.starts_with("frame #") || model::read_log_line(line).text.size() < line.size();
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

constexpr std::size_t kNarrowest = 60;

/// A row of this width that may continue on the next line. Blanks fill the last part of a line, and
/// tables end with a frame.
bool is_full(std::string_view line, std::size_t width) {
  if (width_of(line) != width || line.ends_with("  ")) {
    return false;
  }
  const auto last = static_cast<unsigned char>(line[line.find_last_not_of('\r')]);
  constexpr std::string_view kFrames = "|+-=_*#";
  return last < 0x80 && kFrames.find(static_cast<char>(last)) == kFrames.npos;
}

bool continues_on(std::string_view line, std::string_view next, std::size_t width) {
  return is_full(line, width) && !base::trim(next).empty() && !begins_message(next);
}

/// The most frequent width of lines, if few are wider; 0 if there is none.
std::size_t common_width(const std::vector<std::string_view>& lines) {
  constexpr std::size_t kForEachWider = 8;
  std::map<std::size_t, std::size_t> widths;
  for (const std::string_view line : lines) {
    const std::size_t width = line.size() < kNarrowest ? 0 : width_of(line);
    if (width >= kNarrowest) {
      ++widths[width];
    }
  }
  const auto most = std::max_element(widths.begin(), widths.end(), [](auto& a, auto& b) {
    return a.second != b.second ? a.second < b.second : a.first < b.first;
  });
  std::size_t wider = 0;
  for (auto one = most; one != widths.end(); ++one) {
    wider += one == most ? 0 : one->second;
  }
  return most == widths.end() || wider * kForEachWider > most->second ? 0 : most->first;
}

/// Lines of one format are equal but for their numbers.
std::string without_numbers(std::string_view line) {
  std::string out(line);
  std::erase_if(out, [](unsigned char c) { return std::isdigit(c) != 0; });
  return out;
}

/// Several different lines of this width end within a word.
bool breaks_words(const std::vector<std::string_view>& lines, std::size_t width) {
  constexpr std::size_t kLeast = 2;
  std::set<std::string> different;
  for (std::size_t i = 0; i + 1 < lines.size() && different.size() < kLeast; ++i) {
    const std::string_view next = lines[i + 1];
    const bool within =
        continues_on(lines[i], next, width) && is_word(without_end(lines[i]).back()) &&
        (is_word(next.front()) && (std::islower(static_cast<unsigned char>(next.front())) != 0 ||
                                   std::isdigit(static_cast<unsigned char>(next.front())) != 0)) &&
        !lines[i].ends_with(' ');
    if (within) {
      different.insert(without_numbers(lines[i]));
    }
  }
  return different.size() == kLeast;
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

std::optional<std::string> without_hard_wraps(std::string_view text) {
  const auto lines = base::split(text, '\n');
  const std::size_t width = common_width(lines);
  if (width == 0 || !breaks_words(lines, width)) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool more = i + 1 < lines.size() && continues_on(lines[i], lines[i + 1], width);
    std::string_view line = lines[i];
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    out += line.ends_with("  ") ? without_end(line) : line;
    out += more || i + 1 == lines.size() ? "" : "\n";
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
  for (auto* const step : {rows_as_lines, without_hard_wraps, oldest_first, with_indented_frames}) {
    if (auto changed = step(out ? std::string_view(*out) : text)) {
      out = std::move(changed);
    }
  }
  return out;
}

}  // namespace ddpdoctor::imports
