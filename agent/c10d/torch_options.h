// SPDX-License-Identifier: Apache-2.0
// Reduce operation and root out of the options of a call. Their structures moved between releases,
// and a local or vendor build has a version text of its own; so the place is found by what lies
// there: the type's name behind the virtual table, unused reference counts, a timeout.
#pragma once

#include <cstdint>

#include "agent/hooks.h"

namespace ddpdoctor::agent {

inline constexpr std::uint8_t kUnknownReduceOp = 255;

struct OptionFacts {
  std::uint8_t reduce_op = kUnknownReduceOp;  // c10d::ReduceOp
  std::int32_t root = -1;                     // group rank, -1 = none or unknown
  std::uint32_t unproven = 0;  // wire::Disabled bits of what was looked for and not found
};

/// Facts of the options at `options`, for a group of `ranks` ranks (-1 = unknown).
OptionFacts option_facts(const Hook& hook, std::uint64_t options, std::int32_t ranks);

}  // namespace ddpdoctor::agent
