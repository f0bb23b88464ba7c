// SPDX-License-Identifier: Apache-2.0
// The user's generators that yield one value for each item of something: their length is its
// length.
#pragma once

#include <optional>

#include "collector/program/syntax/node.h"
#include "collector/values/expression.h"

namespace ddpdoctor::values {

/// The iterable of a generator's only loop, as kYielded, if the generator yields nowhere else, ends
/// no iteration early and skips no item.
std::optional<Expression> yielded_by(program::Node function);

}  // namespace ddpdoctor::values
