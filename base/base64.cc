// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ddpdoctor::base {

void append_base64(std::string_view bytes, std::string& out, std::string_view letters) {
  constexpr unsigned kSix = 6;
  constexpr unsigned kLowSix = 0x3F;
  constexpr unsigned kByte = 8;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << kByte | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (unsigned k = 0; k < 4; ++k) {
      out += k <= count ? letters[group >> (kSix * (3 - k)) & kLowSix] : '=';
    }
  }
}

}  // namespace ddpdoctor::base
