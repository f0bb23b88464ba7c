// SPDX-License-Identifier: Apache-2.0
// Branches that leave a function or loop: `if rank != 0: return`, `if done: break`.
#pragma once

#include <string>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// A statement, inside a branch, that ends the function or the program.
struct WayOut {
  int line = 0;
  std::string condition;  // condition of the branch
};

/// What may have prevented reaching `line`: each conditional return or sys.exit before it in its
/// function or at module level; the nearest first.
std::vector<WayOut> ways_out_before(const SourceText& text, int line);

/// Conditional exits of the loops around `line` ("if loss.isnan(): break"), anywhere in the loop;
/// innermost loop first.
std::vector<Block> loop_exits(const SourceText& text, int line);

/// The loop at `loop` starts another iteration after `line` in it succeeded. False for a loop that
/// only an exception repeats: `for n in range(3): try: return call()`. True if the flow is unknown.
bool comes_round(const SourceText& text, int loop, int line);

/// Every path through the suite of the header at `line` raises or ends the program.
bool always_fails(const SourceText& text, int line);

}  // namespace ddpdoctor::program
