// SPDX-License-Identifier: Apache-2.0
// One iteration of a loop: where it gets its data, what ends the loop when the data ends, what
// skips the rest of the iteration.
#pragma once

#include <optional>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// A loop that fetches its data in its body and ends when there is no more.
struct DataEnd {
  int taken = 0;    // the line that gets the next piece: `chunk = next(stream)`
  int noticed = 0;  // the line of the test or except clause that ends the loop
};

/// `while True: try: x = next(it) except StopIteration: break`, `while (x := next(it, None)) is not
/// None`, `x = q.get(); if x is END: break`. `loop` is the line of a loop's header.
std::optional<DataEnd> data_end_of(const SourceText& text, int loop);

/// Tests that skip the rest of an iteration of the innermost loop around `line`, before that line,
/// and that read what the loop rebinds each time ("if batch is None: continue"); the nearest first.
std::vector<Block> skips_before(const SourceText& text, int line);

}  // namespace ddpdoctor::program
