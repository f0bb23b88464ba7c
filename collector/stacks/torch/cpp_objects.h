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

/// std::string of at most `limit` bytes; nothing when unreadable, longer, not text, or not laid out
/// as one: short texts lie in the string itself, others end with a zero within their capacity.
std::optional<std::string> cpp_string(RemoteMemory& memory, RemoteAddress address,
                                      std::size_t limit);

/// Mangled name of the type of a polymorphic object ("N3c1010TensorImplE"), from the type_info
/// before its virtual table; nothing when there is none.
std::optional<std::string> cpp_type_name(RemoteMemory& memory, RemoteAddress object);

/// Bytes of a std::vector whose elements have `element` bytes, at most `limit` elements; false when
/// implausible. `into` keeps its capacity: thousands of these are read in a row.
bool read_vector(RemoteMemory& memory, RemoteAddress address, std::size_t element,
                 std::size_t limit, std::vector<std::byte>& into);

/// The same of a c10::SmallVector<int64_t>.
bool read_small_vector(RemoteMemory& memory, RemoteAddress address, std::size_t limit,
                       std::vector<std::int64_t>& into);

}  // namespace ddpdoctor::stacks
