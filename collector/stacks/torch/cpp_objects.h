// SPDX-License-Identifier: Apache-2.0
// C++ containers in another process, as libstdc++ (C++11 ABI) and c10 lay them out. Lengths are the
// target's word and are capped; anything implausible is absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// std::string of at most `limit` bytes; nothing when unreadable, longer, or not text.
std::optional<std::string> cpp_string(RemoteMemory& memory, RemoteAddress address,
                                      std::size_t limit);

/// Bytes of a std::vector whose elements have `element` bytes, at most `limit` elements; false when
/// implausible. `into` keeps its capacity: thousands of these are read in a row.
bool read_vector(RemoteMemory& memory, RemoteAddress address, std::size_t element,
                 std::size_t limit, std::vector<std::byte>& into);

/// The same of a c10::SmallVector<int64_t>.
bool read_small_vector(RemoteMemory& memory, RemoteAddress address, std::size_t limit,
                       std::vector<std::int64_t>& into);

}  // namespace ddpdoctor::stacks
