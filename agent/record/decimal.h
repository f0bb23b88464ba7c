// SPDX-License-Identifier: Apache-2.0
// Numbers as text without the C library's formatting, which may allocate and take locks.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

/// Writes the decimal digits of `number` (at most 20 and a sign) without a terminator; returns the
/// position after them.
char* put_decimal(char* to, std::int64_t number);

}  // namespace ddpdoctor::agent
