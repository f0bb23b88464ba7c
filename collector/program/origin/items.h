// SPDX-License-Identifier: Apache-2.0
// What a loop goes over: batches, of which ranks may have different numbers, or the elements of
// something that all ranks were meant to have alike.
#pragma once

#include <string_view>

#include "collector/program/origin/origin.h"

namespace ddpdoctor::program {

enum class Items : std::uint8_t {
  kUnknown,
  kBatches,   // of a DataLoader, an iterator, what is read piece by piece; numbers of steps
  kElements,  // keys or values of a dict, parameters of a model, a list that was put together
};

/// Of the `for` at `line`, by what it iterates.
Items items_of(const SourceText& text, int line, const Sources& sources);

/// Of anything else that is gone over, written as an expression.
Items items_of(std::string_view iterable, const Asked& asked, const Sources& sources);

/// The `for` at `line` goes over what every rank has alike: numbers up to one that is the same
/// everywhere, the parameters of a model, a list that was put together the same way. False where
/// that is not known.
bool is_as_long_everywhere(const SourceText& text, int line, const Sources& sources);

/// A statement inside the `for` at `loop` hands the loop's own element to a collective: one call
/// for each element, not for each step. Through the user's functions, too.
bool reduces_each(const SourceText& text, int loop, int statement, const Sources& sources);

}  // namespace ddpdoctor::program
