// SPDX-License-Identifier: Apache-2.0
// The questions about the user's source (collector/program/questions) under the names that their
// users know, and those that hang on what a condition depends on.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/questions/data_ends.h"
#include "collector/program/questions/exceptions.h"
#include "collector/program/questions/exits.h"
#include "collector/program/questions/locks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::python_source {

using Lines = program::SourceText;
using program::always_fails;
using program::Block;
using program::BlockKind;
using program::catches_failures;
using program::data_end_of;
using program::DataEnd;
using program::enclosing;
using program::function_extent;
using program::locks_held;
using program::loop_around;
using program::loop_exits;
using program::retry_loop;
using program::skips_before;
using program::statement_at;
using program::swallowing_clauses;
using program::WayOut;
using program::ways_out_before;

/// What a condition depends on.
enum class Dependence { kNone, kRank, kData };

/// kRank when the expression tests the rank, also through a variable assigned from one (`is_main =
/// rank == 0`), attributes such as `accelerator.is_main_process`, `trainer.is_global_zero`,
/// `local_rank`, `get_rank()`, `os.environ["RANK"]`.
Dependence dependence(std::string_view expression, const Lines& lines, int line);

/// The decorator that lets one rank only into the function that holds `line`: rank_zero_only,
/// on_main_process.
std::optional<Block> rank_decorator(const Lines& lines, int line);

/// Conditions that had to be decided a certain way to reach `line`: enclosing if/elif/else/while,
/// and early exits before it in the same function ("if rank != 0: return"), innermost first.
std::vector<Block> deciding_branches(const Lines& lines, int line);

/// The conditional that separates two lines of one function: it leads to one of them and not to the
/// other. Of several that do, the innermost that tests the rank, else the innermost that tests
/// data, else a loop one line is in and the other is not. `behind`: the line that is reached first;
/// whoever is there has decided nothing yet of what leads to the other.
std::optional<Block> separating_branch(const Lines& lines, int line_a, int line_b,
                                       std::optional<int> behind = std::nullopt);

}  // namespace ddpdoctor::python_source
