// SPDX-License-Identifier: Apache-2.0
// One text for the parser from the lines that are known. Of a recording that holds some lines of a
// file only, the parts are made into Python again: what was open before a gap is closed, an
// indented line whose header is missing gets one, so does an `else` whose `if` is missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The name that stands in for what is not known: the condition of a header that was made up.
inline constexpr const char* kUnknownName = "__ddpdoctor_unknown__";

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

}  // namespace ddpdoctor::program
