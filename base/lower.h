// SPDX-License-Identifier: Apache-2.0
// Lower case without a locale: what tools print and what tables contain is ASCII.
#pragma once

#include <string>
#include <string_view>

namespace ddpdoctor::base {

/// With the letters of ASCII in lower case; the same length.
inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace ddpdoctor::base
