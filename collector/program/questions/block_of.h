// SPDX-License-Identifier: Apache-2.0
// Makes a Block of a header.
#pragma once

#include "collector/program/questions/blocks.h"
#include "collector/program/questions/code.h"

namespace ddpdoctor::program {

Block block_of(const Code& code, std::size_t header);

/// if, elif, else, except, match, case: decided once each time they are reached.
bool is_branch(BlockKind kind);

}  // namespace ddpdoctor::program
