// SPDX-License-Identifier: Apache-2.0
// A loop that passes to a call the result of the same call in the previous iteration.
#pragma once

#include <optional>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The loop around `line` in which the statement's result becomes, through any names, an argument
/// of its own calls, and which a test in the loop can end: `while True: ids = step(ids); if
/// over(ids): break`. A loop that only its header ends (`for layer in layers: x = layer(x)`) does
/// not count.
std::optional<Block> feedback_loop(const SourceText& text, int line);

}  // namespace ddpdoctor::program
