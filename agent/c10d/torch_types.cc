// SPDX-License-Identifier: Apache-2.0
// The Itanium C++ ABI: an object begins with the address of its virtual functions; before these is
// the address of the type_info: { virtual table, name }.
#include "agent/c10d/torch_types.h"

namespace ddpdoctor::agent {

bool type_name(SafeRead& memory, std::uint64_t object, char (&into)[kTypeName]) {
  constexpr std::uint64_t kPointer = 8;
  std::uint64_t functions = 0;
  std::uint64_t type = 0;
  std::uint64_t name = 0;
  if (!memory.value(object, functions) || !memory.value(functions - kPointer, type) ||
      !memory.value(type + kPointer, name)) {
    return false;
  }
  for (std::size_t i = 0; i < kTypeName; ++i) {  // reads only to the end of the name
    if (!memory.value(name + i, into[i])) {
      return false;
    }
    if (into[i] == 0) {
      return i > 0;
    }
  }
  return false;
}

}  // namespace ddpdoctor::agent
