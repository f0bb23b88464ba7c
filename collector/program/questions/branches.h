// SPDX-License-Identifier: Apache-2.0
// The conditions that were decided before a line was reached, and those that separate two lines of
// a function.
#pragma once

#include <optional>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// A branch and what it explains.
struct Branching {
  Block block;
  /// Every rank takes this way unless the condition tests the rank: a loop that iterates, an
  /// assertion, an exit passed once.
  bool by_rank_only = false;
  bool loop = false;   // one line is inside it, the other outside
  bool forks = false;  // it chooses between the two lines
};

/// Conditions that were decided before `line` was reached: enclosing if/elif/else/while, and early
/// exits before it in the same function ("if rank != 0: return"); innermost first.
std::vector<Branching> branches_to(const SourceText& text, int line);

/// The conditionals that lead to one of two lines of a function but not to the other: those around
/// one line, the exits of a loop around one line, and an `if` between them that leaves the loop or
/// the function. Empty when the lines differ only in time. `behind` is the line that is reached
/// first: a rank there has not yet decided anything that leads to the other line.
std::vector<Branching> branches_between(const SourceText& text, int line_a, int line_b,
                                        std::optional<int> behind = std::nullopt);

}  // namespace ddpdoctor::program
