// SPDX-License-Identifier: Apache-2.0
// Formats numbers for readers.
#pragma once

#include <cstdint>
#include <string>

namespace ddpdoctor::base {

/// Separates groups of three digits: "402,653,184".
inline std::string grouped(std::uint64_t number) {
  constexpr std::size_t kGroup = 3;
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > kGroup; at -= kGroup) {
    digits.insert(at - kGroup, ",");
  }
  return digits;
}

}  // namespace ddpdoctor::base
