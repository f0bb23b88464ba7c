// SPDX-License-Identifier: Apache-2.0
// What a loop iterates over: batches, whose number may differ between ranks, or elements of an
// object that should be equal on all ranks.
#pragma once

#include <string_view>

#include "collector/program/origin/origin.h"

namespace ddpdoctor::program {

enum class Items : std::uint8_t {
  kUnknown,
  kBatches,  // items of a DataLoader, an iterator, or a stream; step numbers
  // Keys or values of a dict, parameters of a model, elements of a list built by the program.
  kElements,
};

/// For the `for` at `line`, by its iterable.
Items items_of(const SourceText& text, int line, const Sources& sources);

/// For any other iterable, given as an expression.
Items items_of(std::string_view iterable, const Asked& asked, const Sources& sources);

/// True when the `for` at `line` iterates over something that is equal on every rank: numbers up to
/// a common limit, the parameters of a model, a list built the same way. False when that is
/// unknown.
bool is_as_long_everywhere(const SourceText& text, int line, const Sources& sources);

/// True when a statement inside the `for` at `loop` passes the loop's element to a collective,
/// directly or through the user's functions: one call per element, not per step.
bool reduces_each(const SourceText& text, int loop, int statement, const Sources& sources);

}  // namespace ddpdoctor::program
