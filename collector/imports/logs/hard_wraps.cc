// SPDX-License-Identifier: Apache-2.0
// A window had a width if several lines of this width end within a word or a bracket that the next
// line completes. One such line may be chance; one line that ends within a Python frame is enough.
#include "collector/imports/logs/hard_wraps.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"
#include "collector/imports/logs/fabric_text.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kNarrowest = 60;
constexpr std::size_t kWidest = 512;     // of a window
constexpr std::size_t kMostWrapped = 8;  // lines within one bracket
constexpr std::size_t kLeastBreaks = 2;  // different lines

using TextLines = std::vector<std::string_view>;

std::string_view without_return(std::string_view line) {
  line.remove_suffix(line.ends_with('\r') ? 1 : 0);
  return line;
}

std::string_view without_blanks_behind(std::string_view line) {
  return line.substr(0, line.find_last_not_of(" \t\r") + 1);
}

/// Characters, not bytes, of UTF-8.
std::size_t width_of(std::string_view line) {
  line = without_return(line);
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

/// The line begins a message: it has a prefix of a logger, or is the first of a traceback.
bool begins_message(std::string_view line) {
  line = line.substr(0, kLongestLogLine);
  return line.starts_with('[') || line.starts_with("Traceback") || line.starts_with("  File \"") ||
         line.starts_with("File \"") || line.starts_with("^C") || line.starts_with("frame #") ||
         nccl_tag(line).has_value() || model::read_log_line(line).text.size() < line.size();
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool is_lower(char c) {
  return std::islower(static_cast<unsigned char>(c)) != 0;
}

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

/// Lines of one format are equal except for their numbers.
std::string without_numbers(std::string_view line) {
  std::string out(line);
  std::erase_if(out, [](unsigned char c) { return std::isdigit(c) != 0; });
  return out;
}

std::string first_word(std::string_view line) {
  return without_numbers(line.substr(0, std::min<std::size_t>(line.find(' '), 64)));
}

/// Two lines of one format. A short label without its number is one letter and a colon: "n12:" is
/// "n:".
bool begin_alike(std::string_view line, std::string_view next) {
  const std::string word = first_word(line);
  const bool label = word.size() == 2 && word.back() == ':' && line[1] != ':';
  return (word.size() > 2 || label) && word == first_word(next);
}

bool continues_on(std::string_view line, std::string_view next, std::size_t width) {
  return is_full(line, width) && !base::trim(next).empty() && !begins_message(next) &&
         !begin_alike(line, next);
}

/// By line: it is a row of a table, as another line of its format is among those directly above or
/// below it that have its width. The parts of one long line differ.
std::vector<bool> rows_of_tables(const TextLines& lines) {
  constexpr std::size_t kMostRows = 4096;  // that are compared
  std::vector<bool> out(lines.size(), false);
  const auto width_at = [&lines](std::size_t at) {  // 0 for the padded end of a broken line
    const std::string_view line = without_return(lines[at]);
    return line.size() < kNarrowest || line.ends_with("  ") ? 0 : width_of(line);
  };
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t width = width_at(begin);
    std::size_t end = begin + 1;
    while (width >= kNarrowest && end < lines.size() && width_at(end) == width) {
      ++end;
    }
    std::set<std::string> formats;
    bool again = false;
    for (std::size_t i = begin; end - begin > 1 && i < end && !again && i < begin + kMostRows;
         ++i) {
      again = !formats.insert(without_numbers(lines[i])).second;
    }
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(begin),
              out.begin() + static_cast<std::ptrdiff_t>(end), again);
    begin = end;
  }
  return out;
}

/// The most frequent width of lines, if few are wider; 0 if there is none.
std::size_t common_width(const TextLines& lines) {
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

bool ends_within_word(std::string_view line, std::string_view next) {
  const char first = next.front();
  return is_word(without_blanks_behind(line).back()) && !line.ends_with(' ') &&
         (is_lower(first) || std::isdigit(static_cast<unsigned char>(first)) != 0);
}

/// Several different lines of this width end within a word.
bool breaks_words(const TextLines& lines, const std::vector<bool>& rows, std::size_t width) {
  std::set<std::string> different;
  for (std::size_t i = 0; i + 1 < lines.size() && different.size() < kLeastBreaks; ++i) {
    if (!rows[i] && continues_on(lines[i], lines[i + 1], width) &&
        ends_within_word(lines[i], lines[i + 1])) {
      different.insert(without_numbers(lines[i]));
    }
  }
  return different.size() == kLeastBreaks;
}

/// `File "train.py", line 7, in main`, whole.
bool is_whole_frame(std::string_view text) {
  text = base::trim(text);
  if (!take_prefix(text, "File \"")) {
    return false;
  }
  const std::size_t quote = text.find('"');
  text.remove_prefix(std::min(quote, text.size()));
  if (!take_prefix(text, "\", line ") || !take_number(text, INT32_MAX) ||
      !take_prefix(text, ", in ")) {
    return false;
  }
  return !text.empty() && text.size() < 256 && text.find(' ') == text.npos;
}

/// A frame of Python of which the next line has the end.
bool ends_within_frame(std::string_view line, std::string_view next) {
  const std::string_view text = model::read_log_line(without_return(line)).text;
  if (text.find("File \"") == text.npos || next.starts_with("  ") || is_whole_frame(text) ||
      line.size() + next.size() > kLongestLogLine) {
    return false;
  }
  return is_whole_frame(std::string(text) + std::string(without_return(next)));
}

/// Brackets that a text leaves open, less those that it closes.
int opened(std::string_view text) {
  int out = 0;
  for (const char c : text) {
    out += c == '(' || c == '[' ? 1 : 0;
    out -= c == ')' || c == ']' ? 1 : 0;
  }
  return out;
}

/// The line opens brackets of which the following lines, full but for the last, close one.
bool ends_within_brackets(const TextLines& lines, std::size_t at, std::size_t width) {
  const int open = opened(lines[at]);
  int now = open;
  for (std::size_t i = at + 1; open > 0 && i < lines.size() && i <= at + kMostWrapped; ++i) {
    if (lines[i].empty() || lines[i].front() == ' ' ||
        !continues_on(lines[i - 1], lines[i], width)) {
      return false;
    }
    now += opened(lines[i]);
    if (now < open) {
      return true;
    }
  }
  return false;
}

/// What follows a word cannot begin a line: "TensorShape" before "=[24, 256]".
bool ends_before_sign(std::string_view line, std::string_view next) {
  constexpr std::string_view kSigns = ",)]=:;";
  next = without_blanks_behind(next);
  return is_word(without_return(line).back()) && next.size() > 2 &&
         kSigns.find(next.front()) != kSigns.npos && next[1] != next.front();
}

/// One blank at the end of the window, and the sentence continues.
bool ends_between_words(std::string_view line, std::string_view next) {
  line = without_return(line);
  return line.ends_with(' ') && line.size() > 1 && line[line.size() - 2] != ' ' &&
         is_lower(next.front());
}

/// "opt-1_3b.0 [stderr] … of binary: " before a line without that tag: a terminal broke it at a
/// blank.
bool loses_tag(std::string_view line, std::string_view next) {
  line = without_return(line);
  return model::length_of_stream_tag(line) > 0 && line.ends_with(' ') && !line.ends_with("  ") &&
         width_of(line) >= kNarrowest && !base::trim(next).empty() && next.front() != ' ' &&
         model::length_of_stream_tag(next) == 0 && !begins_message(next);
}

enum class Break { kNone, kLikely, kSure };

/// How the line ends, if the window has its width.
Break break_of(const TextLines& lines, std::size_t at, std::size_t width) {
  const std::string_view line = lines[at];
  const std::string_view next = lines[at + 1];
  if (base::trim(next).empty() || begins_message(next) || begin_alike(line, next)) {
    return Break::kNone;
  }
  if (ends_within_frame(line, next)) {
    return Break::kSure;
  }
  if (!is_full(line, width)) {
    return Break::kNone;
  }
  // Rows of a table have one width: what is left of a broken line is shorter.
  const bool shorter = width_of(without_blanks_behind(next)) < width;
  const bool likely =
      (shorter && (ends_within_word(line, next) || ends_between_words(line, next))) ||
      ends_before_sign(line, next) || ends_within_brackets(lines, at, width);
  return likely ? Break::kLikely : Break::kNone;
}

/// The lines around one of this width up to wider ones: those of one window.
struct Passage {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A progress bar that rewrote its line had no fixed width.
std::size_t width_in_window(std::string_view line) {
  return without_return(line).find('\r') == line.npos ? width_of(line) : 0;
}

Passage passage_around(const std::vector<std::size_t>& widths, std::size_t at) {
  Passage out{.begin = at, .end = at + 1};
  while (out.begin > 0 && widths[out.begin - 1] <= widths[at]) {
    --out.begin;
  }
  while (out.end < widths.size() && widths[out.end] <= widths[at]) {
    ++out.end;
  }
  return out;
}

/// By line: it continues on the next.
std::vector<bool> lines_that_continue(const TextLines& lines) {
  std::vector<bool> out(lines.size(), false);
  const std::vector<bool> rows = rows_of_tables(lines);
  const auto join = [&](Passage passage, std::size_t width) {
    for (std::size_t i = passage.begin; i < passage.end && i + 1 < lines.size(); ++i) {
      out[i] = out[i] || (!rows[i] && continues_on(lines[i], lines[i + 1], width));
    }
  };
  const std::size_t common = common_width(lines);
  if (common > 0 && breaks_words(lines, rows, common)) {
    join({.begin = 0, .end = lines.size()}, common);
  }
  std::vector<std::size_t> widths;
  widths.reserve(lines.size());
  std::transform(lines.begin(), lines.end(), std::back_inserter(widths), width_in_window);
  struct Known {
    Passage passage;
    std::set<std::string> different;
  };
  std::map<std::size_t, Known> known;  // the newest passage of each width
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    out[i] = out[i] || loses_tag(lines[i], lines[i + 1]);
    const std::size_t width = widths[i];
    const bool may_break = width >= kNarrowest && width <= kWidest && !rows[i];
    const Break how = may_break ? break_of(lines, i, width) : Break::kNone;
    if (how == Break::kNone) {
      continue;
    }
    Known& one = known[width];
    if (i >= one.passage.end) {
      one = {.passage = passage_around(widths, i), .different = {}};
    }
    one.different.insert(without_numbers(lines[i]));
    out[i] = out[i] || how == Break::kSure;
    if (how == Break::kSure || one.different.size() == kLeastBreaks) {
      join(one.passage, width);
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> without_hard_wraps(std::string_view text) {
  const TextLines lines = base::split(text, '\n');
  const std::vector<bool> goes_on = lines_that_continue(lines);
  if (std::find(goes_on.begin(), goes_on.end(), true) == goes_on.end()) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = without_return(lines[i]);
    out += line.ends_with("  ") ? without_blanks_behind(line) : line;
    out += goes_on[i] || i + 1 == lines.size() ? "" : "\n";
  }
  return out;
}

}  // namespace ddpdoctor::imports
