// SPDX-License-Identifier: Apache-2.0
// C++ containers in another process, in the layouts of libstdc++ (C++11 ABI) and c10. Lengths come
// from the target and are limited; anything implausible is absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// A std::string of at most `limit` bytes. Nothing if it is unreadable, longer, not text, or does
/// not have the layout: short texts are inside the string itself, others end with a zero within
/// their capacity.
std::optional<std::string> cpp_string(RemoteMemory& memory, RemoteAddress address,
                                      std::size_t limit);

/// Mangled type name of a polymorphic object ("N3c1010TensorImplE"), from the type_info before its
/// virtual table; nothing if there is none.
std::optional<std::string> cpp_type_name(RemoteMemory& memory, RemoteAddress object);

/// The bytes of a std::vector with elements of `element` bytes, at most `limit` elements; false if
/// implausible. `into` keeps its capacity, because thousands of these are read in a row.
bool read_vector(RemoteMemory& memory, RemoteAddress address, std::size_t element,
                 std::size_t limit, std::vector<std::byte>& into);

/// The same for a c10::SmallVector<int64_t>.
bool read_small_vector(RemoteMemory& memory, RemoteAddress address, std::size_t limit,
                       std::vector<std::int64_t>& into);

}  // namespace ddpdoctor::stacks
