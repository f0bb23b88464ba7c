// SPDX-License-Identifier: Apache-2.0
// One iteration of a loop: where it takes its data, what ends it for want of more, what skips the
// rest of it.
#pragma once

#include <optional>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// A loop that asks for its data in its body and ends when there is no more.
struct DataEnd {
  int taken = 0;    // the line that takes the next piece: `chunk = next(stream)`
  int noticed = 0;  // the line whose test or except clause ends the loop
};

/// `while True: try: x = next(it) except StopIteration: break`, `while (x := next(it, None)) is not
/// None`, `x = q.get(); if x is END: break`. `loop` is the line of a loop's header.
std::optional<DataEnd> data_end_of(const SourceText& text, int loop);

/// Tests that skip what is left of an iteration of the innermost loop around `line`, before that
/// line, by what the loop reads anew in each one ("if batch is None: continue"); the nearest first.
std::vector<Block> skips_before(const SourceText& text, int line);

}  // namespace ddpdoctor::program
