// SPDX-License-Identifier: Apache-2.0
// One text for the parser from the lines that are known. Of a recording that holds some lines of a
// file only, the parts are made into Python again: what was open before a gap is closed, an
// indented line whose header is missing gets one, so does an `else` whose `if` is missing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The name that stands in for what is not known: the condition of a header that was made up.
inline constexpr const char* kUnknownName = "__ddpdoctor_unknown__";
/// The statement that takes the place of one that is no Python: the rest of a string, of a bracket.
inline constexpr const char* kUnreadable = "__ddpdoctor_unreadable__";

/// `rows` has the line of each row of `buffer`; a row that was made up has the line of the row that
/// needs it.
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

/// Lines are missing: the text was repaired.
bool has_gaps(const SourceText& source);

/// The same, with kUnreadable for each statement that `reads` finds to be no Python by itself.
WholeText whole_text(const SourceText& source,
                     const std::function<bool(const std::string&)>& reads);

}  // namespace ddpdoctor::program
