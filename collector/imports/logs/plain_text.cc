// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/plain_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestPrefix = 200;  // repeated on each part of a line
constexpr std::size_t kMostParts = 100'000;  // of one line
constexpr std::size_t kLongestSpeed = 300;   // "[00:01<00:01, 9.81it/s, loss=0.3]"

bool digit(char c) {
  return c >= '0' && c <= '9';
}

/// The index after the escape sequence at `at`.
std::size_t behind_escape(std::string_view text, std::size_t at) {
  ++at;
  if (at >= text.size()) {
    return at;
  }
  const char kind = text[at++];
  if (kind == '[') {
    while (at < text.size() && (text[at] < '@' || text[at] > '~') && text[at] != '\n') {
      ++at;
    }
    return std::min(at + 1, text.size());
  }
  if (kind == ']') {  // a title or a link, up to BEL or ESC backslash
    while (at < text.size() && text[at] != '\a' && text[at] != '\x1b' && text[at] != '\n') {
      ++at;
    }
    if (at < text.size() && text[at] == '\x1b') {
      ++at;
    }
    return at < text.size() && text[at] != '\n' ? at + 1 : at;
  }
  return kind == '\n' ? at - 1 : at;
}

std::string without_escapes(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == '\x1b') {
      at = behind_escape(line, at);
    } else {
      out += line[at++];
    }
  }
  return out;
}

/// "[36m", "[1;31m", "[0m" at `at` without their escape character: the index after it, 0 for
/// anything else. "[0]" and "[3m" of a text are not matched.
std::size_t behind_bare_colour(std::string_view text, std::size_t at) {
  const std::size_t end = text.find_first_not_of("0123456789;", at + 1);
  const bool colour = end != text.npos && end > at + 1 && end - at <= 8 && text[end] == 'm';
  return colour && (end - at >= 3 || text[at + 1] == '0') ? end + 1 : 0;
}

std::string without_bare_colours(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t behind = text[at] == '[' ? behind_bare_colour(text, at) : 0;
    if (behind > 0) {
      at = behind;
    } else {
      out += text[at++];
    }
  }
  return out;
}

/// Other spellings of the escape character: rsyslog's "#033[", less's and cat's "^[[", those of
/// strings in JSON and C.
std::optional<std::string> without_spelled_colours(std::string_view text) {
  constexpr std::array<std::string_view, 8> kSpellings = {
      "#033[", "#x1B[", "^[[", "\\u001b[", "\\u001B[", "\\x1b[", "\\x1B[", "\\033["};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto spelled =
        std::find_if(kSpellings.begin(), kSpellings.end(),
                     [&](std::string_view one) { return text.substr(at).starts_with(one); });
    const std::size_t open = at + (spelled == kSpellings.end() ? 0 : spelled->size());
    const std::size_t end = text.find_first_not_of("0123456789;?", open);
    constexpr std::string_view kWithoutNumber = "mAHJK";
    const bool letter =
        end != text.npos && std::isalpha(static_cast<unsigned char>(text[end])) != 0;
    if (open > at && letter && (end > open || kWithoutNumber.find(text[end]) != text.npos)) {
      at = end + 1;
    } else {
      out += text[at++];
    }
  }
  return out.size() < text.size() ? std::optional(std::move(out)) : std::nullopt;
}

/// "[00:01<00:01, 9.81it/s]" at `at`: the index after it, 0 for anything else.
std::size_t behind_speed(std::string_view text, std::size_t at) {
  const std::string_view inside = text.substr(at + 1, kLongestSpeed);
  const std::size_t colon = inside.find(':');
  const std::size_t end = inside.find(']');
  if (end == inside.npos || colon == inside.npos || colon > 4 || colon == 0 || colon > end) {
    return 0;
  }
  const std::string_view told = inside.substr(0, end);
  const bool timed =
      std::all_of(told.begin(), told.begin() + static_cast<std::ptrdiff_t>(colon), digit);
  const bool fast = told.find("/s") != told.npos || told.find("s/") != told.npos;
  return timed && fast ? at + 1 + end + 1 : 0;
}

/// The text after the last progress bar; all of it if there is none.
std::string_view without_bars(std::string_view text) {
  std::size_t from = 0;
  for (std::size_t at = text.find('['); at != text.npos; at = text.find('[', at + 1)) {
    from = std::max(from, behind_speed(text, at));
  }
  const std::string_view rest = text.substr(from);
  return from > 0 && base::trim(rest).empty() ? std::string_view() : rest;
}

/// "section_start:1700000000:name[collapsed=true]" of GitLab.
bool is_section_marker(std::string_view text) {
  return text.starts_with("section_start:") || text.starts_with("section_end:");
}

/// "##[group]", "##[endgroup]", "##[error]" of GitHub and Azure, "::group::" of workflows.
std::string_view without_group_marker(std::string_view text) {
  if (!text.starts_with("##[")) {
    return text;
  }
  const std::size_t end = text.find(']');
  return end == text.npos || end > 16 ? text : text.substr(end + 1);
}

/// Where another process's line begins inside this one: "step 120 [rank0]: Traceback", "step 120
/// [default0]:[E ProcessGroupNCCL".
std::size_t other_line_in(std::string_view text) {
  std::size_t out = text.npos;
  for (const auto& [label, behind] : {std::pair("[rank", "]: "), std::pair("[default", "]:")}) {
    const std::size_t length = std::string_view(label).size();
    for (std::size_t at = text.find(label, 1); at != text.npos; at = text.find(label, at + 1)) {
      const std::size_t end = text.find_first_not_of("0123456789", at + length);
      if (end != text.npos && end > at + length && text.substr(end).starts_with(behind)) {
        out = std::min(out, at);
        break;
      }
    }
  }
  return out;
}

void add_line(std::string_view prefix, std::string_view text, std::string& out) {
  out += prefix;
  out += text;
  out += '\n';
}

void add_parts(std::string_view line, std::string& out) {
  const std::string_view text = model::read_log_line(line).text;
  const std::size_t length = static_cast<std::size_t>(text.data() - line.data());
  const std::string_view prefix = length <= kLongestPrefix ? line.substr(0, length) : "";
  std::size_t parts = 0;
  bool any = false;
  for (std::string_view part : base::split(text, '\r')) {
    if (++parts > kMostParts || is_section_marker(part)) {
      continue;
    }
    part = without_group_marker(without_bars(part));
    const std::size_t other = other_line_in(part);
    if (other != part.npos) {
      add_line(prefix, part.substr(0, other), out);
      part = part.substr(other);
    }
    if (!part.empty()) {
      add_line(prefix, part, out);
      any = true;
    }
  }
  if (!any && text.empty()) {
    add_line(prefix, {}, out);
  }
}

bool may_need_it(std::string_view line) {
  std::size_t rank = line.rfind("[rank");
  rank = rank == line.npos || rank == 0 ? line.rfind("[default") : rank;
  return line.find('\x1b') != line.npos || line.find('\r') != line.npos ||
         line.find("/s") != line.npos || line.find("s/") != line.npos ||
         line.find("##[") != line.npos || (rank != line.npos && rank > 0);
}

}  // namespace

std::optional<std::string> without_colours(std::string_view text) {
  if (text.find('\x1b') != text.npos) {
    return without_escapes(text);
  }
  const bool spelled = text.find("#033[") != text.npos || text.find("^[[") != text.npos ||
                       text.find("#x1B[") != text.npos || text.find("\\u001") != text.npos ||
                       text.find("\\x1") != text.npos || text.find("\\033[") != text.npos;
  auto plain = spelled ? without_spelled_colours(text) : std::nullopt;
  if (plain) {
    return plain;
  }
  const bool bare = text.find("[0m") != text.npos || text.find("[36m(") != text.npos;
  return bare ? std::optional(without_bare_colours(text)) : std::nullopt;
}

std::optional<std::string> plain_text(std::string_view text) {
  const auto lines = base::split(text, '\n');
  if (std::none_of(lines.begin(), lines.end(), may_need_it)) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i + 1 == lines.size() && lines[i].empty()) {
      break;  // after the end of the last line
    }
    if (may_need_it(lines[i])) {
      add_parts(without_escapes(lines[i]), out);
    } else {
      add_line({}, lines[i], out);
    }
  }
  return out;
}

}  // namespace ddpdoctor::imports
