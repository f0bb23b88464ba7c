// SPDX-License-Identifier: Apache-2.0
// The branches around a line, ranked by what their conditions depend on.
#pragma once

#include <optional>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// Conditions that were decided before `line` was reached: enclosing if/elif/else/while, and early
/// exits before it in the same function ("if rank != 0: return"); innermost first.
std::vector<Block> deciding_branches(const SourceText& text, int line);

/// The conditional that leads to one of two lines of a function but not to the other. Of several:
/// the innermost that tests the rank, else the innermost that tests data, else a loop around only
/// one line. `behind` is the line that is reached first: a rank there has not yet decided anything
/// that leads to the other line.
std::optional<Block> separating_branch(const SourceText& text, int line_a, int line_b,
                                       std::optional<int> behind = std::nullopt);

}  // namespace ddpdoctor::program
