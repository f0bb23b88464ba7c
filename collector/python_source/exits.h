// SPDX-License-Identifier: Apache-2.0
// Branches that leave: `if rank != 0: return`, `if done: break`.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/python_source/structure.h"

namespace ddpdoctor::python_source {

/// How the last statement of a suite leaves it. kFunction: return, raise, sys.exit and its like.
enum class Leaving : std::uint8_t { kNothing, kFunction, kBreak, kContinue };

Leaving leaving_of(const Structure& structure, std::size_t header);

/// Whatever way a suite takes, it raises or ends the process: `raise`, sys.exit and its like.
bool always_fails(const Structure& structure, std::size_t header);

/// The innermost loop around a statement in its function, or kNowhere.
std::size_t loop_of(const Structure& structure, std::size_t statement);

/// `if`, `elif` or `else` whose suite always leaves.
bool is_exit_branch(const Structure& structure, std::size_t statement);

/// Exit branches that stand before `statement` in its function and that it was reached past,
/// nearest first within each suite, for one suite: the statements after `header` (kNowhere: the
/// file's start) and before `before`.
std::vector<std::size_t> exits_between(const Structure& structure, std::size_t header,
                                       std::size_t before, std::size_t statement);

/// Exit branches inside the loop `loop` that end it: its own breaks, and returns at any depth.
std::vector<std::size_t> ways_out_of(const Structure& structure, std::size_t loop);

}  // namespace ddpdoctor::python_source
