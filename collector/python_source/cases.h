// SPDX-License-Identifier: Apache-2.0
// The cases of a match statement: which values lead where.
#pragma once

#include <string>
#include <vector>

#include "collector/python_source/blocks.h"

namespace ddpdoctor::python_source {

struct Case {
  int line = 0;
  std::string pattern;  // "Role.CHIEF", "[x] if x > 0"
  int last_line = 0;    // of what it does
};

/// In the order of the source; empty where no match begins at this line.
std::vector<Case> cases_of(const Lines& lines, int line);

}  // namespace ddpdoctor::python_source
