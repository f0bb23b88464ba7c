// SPDX-License-Identifier: Apache-2.0
// Operators on plain values: numbers, strings, sequences of such. Python's rules; what would raise,
// or does not fit 64 bits, is unknown.
#pragma once

#include <optional>
#include <string_view>

#include "collector/values/value.h"

namespace ddpdoctor::values {

/// "+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>".
Value binary(std::string_view operation, const Value& left, const Value& right);

/// "-", "+", "~".
Value unary(std::string_view operation, const Value& operand);

/// Whether two plain values are equal; nothing when one is no plain value.
std::optional<bool> plainly_equal(const Value& left, const Value& right);

/// -1, 0, 1; nothing when Python would not order them, or one is a NaN.
std::optional<int> order(const Value& left, const Value& right);

}  // namespace ddpdoctor::values
