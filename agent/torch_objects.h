// SPDX-License-Identifier: Apache-2.0
// The few C++ objects that torch passes by address, as they lie in memory (libstdc++, C++11 ABI).
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

template <typename T>
const T& as(std::uint64_t address) {
  return *reinterpret_cast<const T*>(address);
}

}  // namespace ddpdoctor::agent
