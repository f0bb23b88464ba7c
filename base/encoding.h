// SPDX-License-Identifier: Apache-2.0
// UTF-8, and texts that Windows programs wrote: a mark before UTF-8, or UTF-16 behind one.
#pragma once

#include <cstdint>
#include <string>

namespace ddpdoctor::base {

/// The character with this number, which is at most 0x10ffff; half of a pair is not looked for.
void append_utf8(std::uint32_t code, std::string& out);

/// The same text in UTF-8 and without a byte order mark. Bytes without a mark are left as they are;
/// half a character at the end is left out, halves elsewhere become U+FFFD.
std::string as_utf8(std::string bytes);

}  // namespace ddpdoctor::base
