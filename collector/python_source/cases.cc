// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/cases.h"

#include "collector/python_source/structure.h"

namespace ddpdoctor::python_source {

std::vector<Case> cases_of(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t match = structure.at(line);
  std::vector<Case> out;
  if (match == kNowhere || structure.statements[match].kind != BlockKind::kMatch) {
    return out;
  }
  for (std::size_t i = match + 1; i < structure.statements.size(); ++i) {
    const Statement& statement = structure.statements[i];
    if (!structure.encloses(match, i)) {
      break;
    }
    if (statement.kind == BlockKind::kCase && statement.parent == match) {
      out.push_back({.line = statement.line(),
                     .pattern = text_of(statement.header()),
                     .last_line = statement.logical.last_line});
    } else if (!out.empty()) {
      out.back().last_line = statement.logical.last_line;
    }
  }
  return out;
}

}  // namespace ddpdoctor::python_source
