// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/blocks.h"

#include "collector/program/origin/origin.h"

namespace ddpdoctor::python_source {

std::optional<Block> rank_decorator(const Lines& lines, int line) {
  static const program::Sources kNoOthers;
  const auto found = program::ranks_let_in(lines, line, kNoOthers);
  if (!found) {
    return std::nullopt;
  }
  Block out;
  out.kind = BlockKind::kFunction;
  out.line = found->line;
  out.condition = found->decorator.one_line();
  out.text = "@" + out.condition;
  return out;
}

}  // namespace ddpdoctor::python_source
