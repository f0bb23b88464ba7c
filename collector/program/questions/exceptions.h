// SPDX-License-Identifier: Apache-2.0
// What happens to an exception raised on a line.
#pragma once

#include <optional>
#include <vector>

#include "collector/program/origin/origin.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// What lets the program continue after an exception of `line`, innermost first: except clauses
/// that do not always re-raise or end the program, `with suppress(…)`, and contexts of the user in
/// `sources` that catch. Omits clauses that only catch the end of data (StopIteration, queue.Empty)
/// or a failed import.
std::vector<Block> swallowing_clauses(const SourceText& text, int line, const Sources& sources);

/// The except clause also catches failures; `except StopIteration` and `except ImportError` do not.
bool catches_failures(const Block& clause);

/// The loop that repeats the try whose except clause contains `line`, in the same function; nothing
/// if the clause always leaves that loop.
std::optional<Block> retry_loop(const SourceText& text, int line);

/// The except clause that begins on a line and catches failures; nothing for any other line.
std::optional<Block> failure_clause_at(const SourceText& text, int line);

}  // namespace ddpdoctor::program
