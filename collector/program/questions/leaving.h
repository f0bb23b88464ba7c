// SPDX-License-Identifier: Apache-2.0
// How control leaves a suite, over all paths through it.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/program/questions/code.h"

namespace ddpdoctor::program {

/// The exits of a suite.
struct Exits {
  bool falls = true;  // control reaches its end
  bool breaks = false;
  bool continues = false;
  bool returns = false;
  bool raises = false;
  bool ends = false;  // sys.exit and similar calls
};

Exits exits_of(Node suite);

/// The exit of a suite whose end is never reached. kFunction: return, sys.exit and similar calls. A
/// raise does not count, because the program did not choose it.
enum class Leaving : std::uint8_t { kNothing, kFunction, kBreak, kContinue };

Leaving leaving_of(const Code& code, std::size_t header);

/// Every path through the suite raises or ends the process.
bool always_fails(const Code& code, std::size_t header);

/// Branches that leave and that control passed before it reached `statement`, nearest first: those
/// between `header` (kNone: start of the file) and `before`.
std::vector<std::size_t> exits_between(const Code& code, std::size_t header, std::size_t before,
                                       std::size_t statement);

/// Branches inside a loop that end it: its own breaks, and returns at any depth.
std::vector<std::size_t> ways_out_of(const Code& code, std::size_t loop);

/// An `if`, `elif` or `else` whose suite always leaves.
bool is_exit_branch(const Code& code, std::size_t statement);

}  // namespace ddpdoctor::program
