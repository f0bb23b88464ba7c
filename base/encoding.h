// SPDX-License-Identifier: Apache-2.0
// Converts texts that Windows programs wrote (UTF-16, or UTF-8 with a byte order mark) to plain
// UTF-8.
#pragma once

#include <cstdint>
#include <string>

namespace ddpdoctor::base {

/// Appends the character with this number, at most 0x10ffff. Surrogates are not rejected.
void append_utf8(std::uint32_t code, std::string& out);

/// Returns the text in UTF-8 without a byte order mark. Bytes without a mark are returned
/// unchanged. Half a character at the end is dropped; halves elsewhere become U+FFFD.
std::string as_utf8(std::string bytes);

}  // namespace ddpdoctor::base
