// SPDX-License-Identifier: Apache-2.0
// The type name of a C++ object, behind its virtual table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/record/safe_read.h"

namespace ddpdoctor::agent {

inline constexpr std::size_t kTypeName = 128;

/// The mangled name ("N4c10d8ReduceOpE") of the type of the object at `object`, read safely
/// whatever is there; false if there is no such object or its name is longer.
bool type_name(SafeRead& memory, std::uint64_t object, char (&into)[kTypeName]);

}  // namespace ddpdoctor::agent
