// SPDX-License-Identifier: Apache-2.0
// Which conditions were decided to reach a line, and which ones separate two lines of a function.
#pragma once

#include <optional>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// A branch, and what it explains.
struct Branching {
  Block block;
  /// Every rank goes this way unless the condition tests the rank: an iterated loop, an assertion,
  /// an exit that is passed once.
  bool by_rank_only = false;
  bool loop = false;   // one line is in it, the other is not
  bool forks = false;  // it chooses between the two lines
};

/// Conditions that had to be decided a certain way to reach `line`: enclosing if/elif/else/while,
/// and early exits before it in the same function ("if rank != 0: return"), innermost first.
std::vector<Branching> branches_to(const SourceText& text, int line);

/// The conditionals that lead to one of two lines of a function and not to the other: those around
/// one line, the exits of a loop that holds one line, an `if` between them that leaves the loop or
/// the function. Empty for lines that differ in time only. `behind`: the line that is reached
/// first; whoever is there has decided nothing yet of what leads to the other.
std::vector<Branching> branches_between(const SourceText& text, int line_a, int line_b,
                                        std::optional<int> behind = std::nullopt);

}  // namespace ddpdoctor::program
