// SPDX-License-Identifier: Apache-2.0
// Address arithmetic for the interpreter's structures.
#pragma once

#include <cstdint>

#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// The address of a field; `offset` comes from PythonLayout.
inline RemoteAddress at(RemoteAddress base, std::int64_t offset) {
  return base + static_cast<RemoteAddress>(offset);
}

/// The pointer stored at the address; 0 if it cannot be read.
inline RemoteAddress pointer(RemoteMemory& memory, RemoteAddress address) {
  return memory.get<RemoteAddress>(address).value_or(0);
}

}  // namespace ddpdoctor::stacks
