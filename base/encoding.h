// SPDX-License-Identifier: Apache-2.0
// Texts that Windows programs wrote: a mark before UTF-8, or UTF-16 behind one.
#pragma once

#include <string>

namespace ddpdoctor::base {

/// The same text in UTF-8 and without a byte order mark. Bytes without a mark are left as they are;
/// half a character at the end is left out, halves elsewhere become U+FFFD.
std::string as_utf8(std::string bytes);

}  // namespace ddpdoctor::base
