// SPDX-License-Identifier: Apache-2.0
// How a suite is left: by all ways that control can take through it.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/program/questions/code.h"

namespace ddpdoctor::program {

/// The ways on which a suite is left.
struct Exits {
  bool falls = true;  // off its end
  bool breaks = false;
  bool continues = false;
  bool returns = false;
  bool raises = false;
  bool ends = false;  // sys.exit and its like
};

Exits exits_of(Node suite);

/// What a suite that never falls off its end does. kFunction: return, sys.exit and its like. A
/// raise is no way that anybody chose: what follows is the exception's story.
enum class Leaving : std::uint8_t { kNothing, kFunction, kBreak, kContinue };

Leaving leaving_of(const Code& code, std::size_t header);

/// Whatever way a suite takes, it raises or ends the process.
bool always_fails(const Code& code, std::size_t header);

/// Branches that leave and that `statement` was reached past, nearest first: those between `header`
/// (kNone: the file's start) and `before`.
std::vector<std::size_t> exits_between(const Code& code, std::size_t header, std::size_t before,
                                       std::size_t statement);

/// Branches inside a loop that end it: its own breaks, and returns at any depth.
std::vector<std::size_t> ways_out_of(const Code& code, std::size_t loop);

/// `if`, `elif` or `else` whose suite always leaves.
bool is_exit_branch(const Code& code, std::size_t statement);

}  // namespace ddpdoctor::program
