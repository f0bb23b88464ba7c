// SPDX-License-Identifier: Apache-2.0
// What a condition depends on, by its origin within one file. Who has the other files asks
// program::origin_of.
#pragma once

#include <optional>
#include <string_view>

#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// What a condition depends on.
enum class Dependence { kNone, kRank, kData };

/// kRank when the expression comes from the rank, through whatever it is assigned, passed or
/// returned; kData when it comes from what only this rank has, or from what is not known.
Dependence dependence(std::string_view expression, const SourceText& text, int line);

/// A call in an expression tells the time.
bool asks_the_clock(const SourceText& text, int line, std::string_view expression);

/// The decorator that lets one rank only into the function that holds `line`: rank_zero_only,
/// on_main_process.
std::optional<Block> rank_decorator(const SourceText& text, int line);

}  // namespace ddpdoctor::program
