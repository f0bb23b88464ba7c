// SPDX-License-Identifier: Apache-2.0
// The characters of variable and function names in Python and C++.
#pragma once

#include <cctype>

namespace ddpdoctor::base {

/// A letter, a digit or "_".
inline bool is_word(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

}  // namespace ddpdoctor::base
