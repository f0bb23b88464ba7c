// SPDX-License-Identifier: Apache-2.0
// What becomes of an exception of a line.
#pragma once

#include <optional>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// What lets the program go on after an exception of `line`, innermost first: except clauses that
/// do not always raise again or end the program, `with suppress(…)`. Not those that only catch the
/// end of something (StopIteration, queue.Empty) or an import that failed.
std::vector<Block> swallowing_clauses(const SourceText& text, int line);

/// The except clause is for failures, too: `except StopIteration` and `except ImportError` are not.
bool catches_failures(const Block& clause);

/// The loop that comes back to the try whose except clause holds `line`, in the same function;
/// nothing where the clause always leaves that loop.
std::optional<Block> retry_loop(const SourceText& text, int line);

/// The except clause that begins on a line and is for failures; nothing for any other line.
std::optional<Block> failure_clause_at(const SourceText& text, int line);

}  // namespace ddpdoctor::program
