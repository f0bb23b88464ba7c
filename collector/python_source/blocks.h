// SPDX-License-Identifier: Apache-2.0
// Reads the structure around a line of Python by its indentation: which conditions lead to it,
// which loop and function it is in. A small scanner over tokenised lines, not a parser: it must
// also work on the few lines a capture carries.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::python_source {

/// Lines of one file by number; gaps are allowed (a hand-written capture has few lines).
using Lines = program::SourceText;

enum class BlockKind {
  kIf,
  kElif,
  kElse,
  kFor,
  kWhile,
  kTry,
  kExcept,
  kFinally,
  kWith,
  kMatch,
  kCase,
  kFunction,
  kClass
};

/// A compound statement that encloses a line: `if rank == 0:` at 57.
struct Block {
  BlockKind kind = BlockKind::kIf;
  int line = 0;
  int indent = 0;
  std::string text;  // the header as written, joined over continuation lines, without the colon
  std::string condition;  // the tested, iterated or entered expression ("rank == 0"); for else: of
                          // the if it belongs to
  bool within = false;    // of one statement: `x = f() if rank == 0 else None`, `ok and f()`
};

/// Blocks around `line`, innermost first, up to and including the function.
std::vector<Block> enclosing(const Lines& lines, int line);

/// Conditions that had to be decided a certain way to reach `line`: enclosing if/elif/else/while,
/// and early exits before it in the same function ("if rank != 0: return"), innermost first.
std::vector<Block> deciding_branches(const Lines& lines, int line);

/// A statement in a branch that ends the function or the program.
struct WayOut {
  int line = 0;
  std::string condition;  // of the branch
};

/// What may have kept `line` from being reached: each conditional return, sys.exit and its like
/// before it in its function, or at module level; the nearest first.
std::vector<WayOut> ways_out_before(const Lines& lines, int line);

/// What a condition depends on.
enum class Dependence { kNone, kRank, kData };

/// kRank when the expression tests the rank, also through a variable assigned from one (`is_main =
/// rank == 0`), attributes such as `accelerator.is_main_process`, `trainer.is_global_zero`,
/// `local_rank`, `get_rank()`, `os.environ["RANK"]`.
Dependence dependence(std::string_view expression, const Lines& lines, int line);

/// True when the function that holds `line` has a decorator such as rank_zero_only or
/// on_main_process.
std::optional<Block> rank_decorator(const Lines& lines, int line);

/// First and last line of the function that holds `line`.
std::optional<std::pair<int, int>> function_extent(const Lines& lines, int line);

/// The conditional that separates two lines of one function: it leads to one of them and not to the
/// other. Of several that do, the innermost that tests the rank, else the innermost that tests
/// data, else a loop one line is in and the other is not. An `if` that leaves the loop or the
/// function between the lines counts; nothing for two lines that differ only in time. `behind`:
/// the one of the two lines that is reached first; whoever is there has decided nothing yet of what
/// leads to the other.
std::optional<Block> separating_branch(const Lines& lines, int line_a, int line_b,
                                       std::optional<int> behind = std::nullopt);

/// The innermost `for` or `while` around `line` in its function.
std::optional<Block> loop_around(const Lines& lines, int line);

/// Conditional ways out of the loops around `line` ("if loss.isnan(): break"), wherever they stand
/// in the loop, innermost loop first.
std::vector<Block> loop_exits(const Lines& lines, int line);

/// What lets the program go on after an exception of `line`, innermost first: except clauses that
/// do not always raise again or end the program, `with suppress(…)`. Not those that only catch the
/// end of something (StopIteration, queue.Empty) or an import that failed.
std::vector<Block> swallowing_clauses(const Lines& lines, int line);

/// The except clause is for failures, too: `except StopIteration` and `except ImportError` are not.
bool catches_failures(const Block& clause);

/// The loop that comes back to the try whose except clause `line` stands in, in the same function;
/// nothing where the clause always leaves that loop.
std::optional<Block> retry_loop(const Lines& lines, int line);

/// The suite under the header at `line` raises or ends the program whatever way it takes.
bool always_fails(const Lines& lines, int line);

/// A loop that asks for its data in its body and ends when there is no more.
struct DataEnd {
  int taken = 0;    // the line that takes the next piece: `chunk = next(stream)`
  int noticed = 0;  // the line whose test or except clause ends the loop
};

/// `while True: try: x = next(it) except StopIteration: break`, `while (x := next(it, None)) is not
/// None`, `x = q.get(); if x is END: break`. `loop` is the line of a loop's header.
std::optional<DataEnd> data_end_of(const Lines& lines, int loop);

/// Tests that skip what is left of a round of the innermost loop around `line`, before that line,
/// by what the loop reads anew in each round ("if batch is None: continue"); the nearest first.
std::vector<Block> skips_before(const Lines& lines, int line);

/// The logical line that covers `line`, continuation lines joined, without comments; empty when the
/// line is not known.
std::string statement_at(const Lines& lines, int line);

/// Lock expressions entered by `with` or `.acquire()` around `line`, outermost first.
std::vector<std::string> locks_held(const Lines& lines, int line);

}  // namespace ddpdoctor::python_source
