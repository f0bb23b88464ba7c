// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/rings/bytes.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "wire/layout.h"

namespace ddpdoctor::sources {

std::string RingBytes::text(std::uint32_t offset) const {
  constexpr std::size_t kLongest = 1100;
  if (offset == 0 || offset >= wire::kTextBytes) {
    return {};
  }
  return fixed(offsetof(wire::Ring, text) + offset,
               std::min<std::size_t>(wire::kTextBytes - offset, kLongest));
}

std::string RingBytes::fixed(std::size_t offset, std::size_t size) const {
  const auto* const begin = reinterpret_cast<const char*>(bytes_.data()) + offset;
  return base::printable(std::string_view(begin, ::strnlen(begin, size)));
}

}  // namespace ddpdoctor::sources
