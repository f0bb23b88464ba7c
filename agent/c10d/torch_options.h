// SPDX-License-Identifier: Apache-2.0
// Reads reduce operation and root from the options of a call. Their structures changed between
// releases, and local or vendor builds have their own version text; so the offset is found from
// memory: the type's name behind the virtual table, unused reference counts, a timeout.
#pragma once

#include <cstdint>

#include "agent/hooks.h"

namespace ddpdoctor::agent {

inline constexpr std::uint8_t kUnknownReduceOp = 255;

struct OptionFacts {
  std::uint8_t reduce_op = kUnknownReduceOp;  // c10d::ReduceOp
  std::int32_t root = -1;                     // group rank, -1 = none or unknown
  std::uint32_t unproven = 0;  // wire::Disabled bits of the values that could not be found
};

/// Facts of the options at `options`, for a group of `ranks` ranks (-1 = unknown).
OptionFacts option_facts(const Hook& hook, std::uint64_t options, std::int32_t ranks);

}  // namespace ddpdoctor::agent
