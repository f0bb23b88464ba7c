// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/margins.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "base/text.h"
#include "collector/imports/logs/text_file.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kWidest = 64;
constexpr std::size_t kCodeBlock = 4;        // blanks; fewer may be the text's own indentation
constexpr std::size_t kLongestTitle = 1024;  // characters of the line that begins a dump

constexpr std::string_view kMarks = " \t>";

/// Blanks and marks of quotations; of a comment also its "# ".
std::string_view margin_of(std::string_view line) {
  std::size_t end = line.find_first_not_of(kMarks);
  if (end != line.npos && line.substr(end).starts_with("# ")) {
    end = line.find_first_not_of(kMarks, end + 1);
  }
  return line.substr(0, end == line.npos || end > kWidest ? 0 : end);
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t>\r") == line.npos;
}

/// A tool never indents the first line of a dump.
bool begins_dump(std::string_view line) {
  constexpr std::array<std::string_view, 6> kBeginnings = {
      "Process ", "Traceback for thread ", "Core file information:",
      "Thread ",  "Current thread 0x",     "PID "};
  line = model::read_log_line(line.substr(0, kLongestTitle)).text;
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [line](std::string_view one) { return line.starts_with(one); }) &&
         (is_py_spy(line, {}) || is_pystack(line, {}) || is_gdb(line, {}) ||
          is_eu_stack(line, {}) || is_faulthandler(line, {}));
}

bool has_margin(std::string_view line, std::string_view margin) {
  return line.starts_with(margin) || is_blank(line) || base::trim(line) == base::trim(margin);
}

void take_off(std::string_view& line, std::string_view margin) {
  line = line.starts_with(margin) ? line.substr(margin.size()) : std::string_view();
}

/// The common beginning of all lines, unless it may be their own.
std::string_view shared_margin(const std::vector<std::string_view>& lines) {
  std::optional<std::string_view> shared;
  for (const std::string_view line : lines) {
    if (is_blank(line)) {
      continue;
    }
    const std::string_view margin = margin_of(line);
    const std::string_view before = shared.value_or(margin);
    const auto [end, other] =
        std::mismatch(before.begin(), before.end(), margin.begin(), margin.end());
    shared = before.substr(0, static_cast<std::size_t>(end - before.begin()));
    if (shared->empty()) {
      return {};
    }
  }
  const std::string_view margin = shared.value_or("");
  return margin.size() >= kCodeBlock || margin.find('>') != margin.npos ? margin : "";
}

/// Removes the margins of dumps from their lines; false if there are none.
bool take_off_each(std::vector<std::string_view>& lines) {
  bool any = false;
  std::size_t done = 0;  // lines before this one belong to an earlier dump
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view margin = margin_of(lines[i]);
    if (margin.empty() || !begins_dump(lines[i].substr(margin.size()))) {
      continue;
    }
    std::size_t from = i;
    while (from > done && has_margin(lines[from - 1], margin)) {
      --from;
    }
    for (i = from; i < lines.size() && has_margin(lines[i], margin); ++i) {
      take_off(lines[i], margin);
    }
    any = true;
    done = i;
    --i;
  }
  return any;
}

}  // namespace

std::string_view behind_margin(std::string_view line) {
  return line.substr(margin_of(line).size());
}

std::optional<std::string> without_margins(std::string_view text) {
  auto lines = base::split(text, '\n');
  const std::string_view shared = shared_margin(lines);
  if (!shared.empty()) {
    std::for_each(lines.begin(), lines.end(), [shared](auto& line) { take_off(line, shared); });
  }
  if (!take_off_each(lines) && shared.empty()) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(text.size());
  for (const std::string_view line : lines) {
    out += line;
    out += '\n';
  }
  out.pop_back();  // after the end of the last line, or it had none
  return out;
}

}  // namespace ddpdoctor::imports
