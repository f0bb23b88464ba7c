// SPDX-License-Identifier: Apache-2.0
// Steps through the interpreter's structures.
#pragma once

#include <cstdint>

#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// A field of a structure; `offset` as PythonLayout gives it.
inline RemoteAddress at(RemoteAddress base, std::int64_t offset) {
  return base + static_cast<RemoteAddress>(offset);
}

/// The pointer that lies there; 0 when it cannot be read.
inline RemoteAddress pointer(RemoteMemory& memory, RemoteAddress address) {
  return memory.get<RemoteAddress>(address).value_or(0);
}

}  // namespace ddpdoctor::stacks
