// SPDX-License-Identifier: Apache-2.0
// Conditions inside one statement: `x = f() if rank == 0 else None`, `rank == 0 and
// dist.barrier()`.
#pragma once

#include <vector>

#include "collector/program/questions/blocks.h"
#include "collector/program/questions/code.h"

namespace ddpdoctor::program {

/// Conditions that decide whether the calls of a statement on `line` are made, innermost first.
/// Omits those of comprehensions, lambdas and arguments: a line number alone cannot tell them from
/// the call itself.
std::vector<Block> inline_conditions(const Code& code, std::size_t statement, int line);

}  // namespace ddpdoctor::program
