// SPDX-License-Identifier: Apache-2.0
// The memory layout of the few C++ objects that torch passes by address (libstdc++).
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

struct Vector {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t capacity;
};

struct String {  // std::string of the C++11 ABI
  const char* text;
  std::uint64_t length;
};

/// The std::string of the old ABI is one pointer to its characters; their number precedes them.
struct OldString {
  const char* text;
  [[nodiscard]] String plain() const {
    constexpr std::uint64_t kBefore = 24;
    return {text, *reinterpret_cast<const std::uint64_t*>(text - kBefore)};
  }
};

template <typename T>
const T& as(std::uint64_t address) {
  return *reinterpret_cast<const T*>(address);
}

}  // namespace ddpdoctor::agent
