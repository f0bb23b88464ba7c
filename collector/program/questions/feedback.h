// SPDX-License-Identifier: Apache-2.0
// A loop that gives a call what the same call returned one iteration before.
#pragma once

#include <optional>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The loop around `line` in which what the statement returns becomes, over whatever names, an
/// argument of its own calls, and which a test in it can end: `while True: ids = step(ids); if
/// over(ids): break`. A loop that only its header ends (`for layer in layers: x = layer(x)`) is
/// none.
std::optional<Block> feedback_loop(const SourceText& text, int line);

}  // namespace ddpdoctor::program
