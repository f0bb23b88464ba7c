// SPDX-License-Identifier: Apache-2.0
// Numbers of CPython that are the same in every version: what a type is a subclass of (tp_flags),
// how a code object holds a local, and the versions at which layouts changed. Sources:
// Include/object.h, Include/internal/pycore_code.h, Include/patchlevel.h of CPython 3.8 to 3.15.
#pragma once

#include <cstdint>

namespace ddpdoctor::stacks {

// The first two bytes of PY_VERSION_HEX.
constexpr std::int32_t kVersion310 = 0x030a;
constexpr std::int32_t kVersion311 = 0x030b;
constexpr std::int32_t kVersion312 = 0x030c;
constexpr std::int32_t kVersion313 = 0x030d;
constexpr std::int32_t kVersion314 = 0x030e;

// Bits of PyTypeObject.tp_flags.
constexpr std::uint64_t kHeapType = 1ULL << 9U;
constexpr std::uint64_t kIntSubclass = 1ULL << 24U;
constexpr std::uint64_t kListSubclass = 1ULL << 25U;
constexpr std::uint64_t kTupleSubclass = 1ULL << 26U;
constexpr std::uint64_t kBytesSubclass = 1ULL << 27U;
constexpr std::uint64_t kStringSubclass = 1ULL << 28U;
constexpr std::uint64_t kDictSubclass = 1ULL << 29U;
constexpr std::uint64_t kTypeSubclass = 1ULL << 31U;

constexpr unsigned kDigitBits = 30;  // sys.int_info.bits_per_digit on 64-bit builds

// Bits of a local's kind in a code object of 3.11 and later.
constexpr unsigned kCellLocal = 0x40;
constexpr unsigned kFreeLocal = 0x80;

}  // namespace ddpdoctor::stacks
