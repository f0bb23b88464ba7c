// SPDX-License-Identifier: Apache-2.0
// Branches that leave: `if rank != 0: return`, `if done: break`.
#pragma once

#include <string>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// A statement in a branch that ends the function or the program.
struct WayOut {
  int line = 0;
  std::string condition;  // of the branch
};

/// What may have kept `line` from being reached: each conditional return, sys.exit and its like
/// before it in its function, or at module level; the nearest first.
std::vector<WayOut> ways_out_before(const SourceText& text, int line);

/// Conditional ways out of the loops around `line` ("if loss.isnan(): break"), wherever they are
/// in the loop, innermost loop first.
std::vector<Block> loop_exits(const SourceText& text, int line);

/// The loop at `loop` goes on to its next iteration once `line` in it has succeeded. False for what
/// only an exception repeats: `for n in range(3): try: return call()`. True where the flow is not
/// known.
bool comes_round(const SourceText& text, int loop, int line);

/// The suite under the header at `line` raises or ends the program whatever way it takes.
bool always_fails(const SourceText& text, int line);

}  // namespace ddpdoctor::program
