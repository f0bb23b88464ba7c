// SPDX-License-Identifier: Apache-2.0
// Builds one text for the parser from the known lines. If a recording contains only some lines of a
// file, the parts are repaired into Python: brackets and strings left open before a gap are closed,
// and an indented line without a header, or an `else` without an `if`, gets one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The placeholder for the unknown condition of an inserted header.
inline constexpr const char* kUnknownName = "__ddpdoctor_unknown__";
/// The replacement for a statement that is not Python: the rest of a string or bracket.
inline constexpr const char* kUnreadable = "__ddpdoctor_unreadable__";

/// `rows` has the line of each row of `buffer`; an inserted row has the line of the row that needs
/// it.
struct WholeText {
  std::string buffer;
  std::vector<int> rows;  // empty: row n is line n + 1

  [[nodiscard]] int line_of_row(std::uint32_t row) const {
    if (rows.empty()) {
      return static_cast<int>(row) + 1;
    }
    return row < rows.size() ? rows[row] : rows.back();
  }
};

WholeText whole_text(const SourceText& source);

/// Lines are missing and the text was repaired.
bool has_gaps(const SourceText& source);

/// The same, with kUnreadable for each statement that `reads` reports as not being Python by
/// itself.
WholeText whole_text(const SourceText& source,
                     const std::function<bool(const std::string&)>& reads);

}  // namespace ddpdoctor::program
