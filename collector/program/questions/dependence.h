// SPDX-License-Identifier: Apache-2.0
// What a condition depends on, by its origin within one file. program::origin_of does the same
// across files.
#pragma once

#include <optional>
#include <string_view>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// What a condition depends on.
enum class Dependence { kNone, kRank, kData };

/// kRank when the value comes from the rank, through any assignment, argument or return; kData when
/// it comes from data of this rank or from something unknown.
Dependence dependence(std::string_view expression, const SourceText& text, int line);

/// The expression contains a call that reads the clock.
bool asks_the_clock(const SourceText& text, int line, std::string_view expression);

/// The decorator that runs the function around `line` on one rank only: rank_zero_only,
/// on_main_process.
std::optional<Block> rank_decorator(const SourceText& text, int line);

}  // namespace ddpdoctor::program
