// SPDX-License-Identifier: Apache-2.0
// The branches around a line, weighed by what their conditions depend on.
#pragma once

#include <optional>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// Conditions that had to be decided a certain way to reach `line`: enclosing if/elif/else/while,
/// and early exits before it in the same function ("if rank != 0: return"), innermost first.
std::vector<Block> deciding_branches(const SourceText& text, int line);

/// The conditional that separates two lines of one function: it leads to one of them and not to the
/// other. Of several that do, the innermost that tests the rank, else the innermost that tests
/// data, else a loop one line is in and the other is not. `behind`: the line that is reached first;
/// whoever is there has decided nothing yet of what leads to the other.
std::optional<Block> separating_branch(const SourceText& text, int line_a, int line_b,
                                       std::optional<int> behind = std::nullopt);

}  // namespace ddpdoctor::program
