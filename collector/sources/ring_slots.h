// SPDX-License-Identifier: Apache-2.0
// The wire's structs without their atomics, for readers that copy bytes out of a ring.
#pragma once

#include <cstdint>

#include "wire/layout.h"

namespace ddpdoctor::sources {

/// wire::Slot.
struct PlainSlot {
  std::uint64_t sequence;
  std::uint64_t time;
  std::uint32_t tid;
  std::uint16_t kind;
  std::uint8_t phase;
  std::uint8_t operation;
  std::uint32_t site;
  std::uint16_t group;
  std::uint8_t dtype;
  std::uint8_t reduce_op;
  std::uint64_t object;
  std::int64_t count;
  std::uint32_t group_sequence;
  std::int32_t peer;
  std::uint32_t text;
  std::uint32_t detail;
};
static_assert(sizeof(PlainSlot) == sizeof(wire::Slot));

/// wire::Site.
struct PlainSite {
  std::uint32_t caller;
  std::uint32_t file;
  std::uint32_t function;
  std::uint32_t line;
};
static_assert(sizeof(PlainSite) == sizeof(wire::Site));

}  // namespace ddpdoctor::sources
