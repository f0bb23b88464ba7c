// SPDX-License-Identifier: Apache-2.0
// Operators on plain values: numbers, strings and sequences of these. Follows Python's rules; the
// result is unknown if Python would raise or the value does not fit 64 bits.
#pragma once

#include <optional>
#include <string_view>

#include "collector/values/value.h"

namespace ddpdoctor::values {

/// "+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>".
Value binary(std::string_view operation, const Value& left, const Value& right);

/// "-", "+", "~".
Value unary(std::string_view operation, const Value& operand);

/// Whether two plain values are equal; nothing if one is not a plain value.
std::optional<bool> plainly_equal(const Value& left, const Value& right);

/// -1, 0 or 1; nothing if Python cannot order them or one is a NaN.
std::optional<int> order(const Value& left, const Value& right);

}  // namespace ddpdoctor::values
