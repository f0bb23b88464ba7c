// SPDX-License-Identifier: Apache-2.0
// Whether a loop iterates in an order that each process chooses: over a set of strings, the entries
// of a directory, or a sort by hash().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/program/origin/origin.h"

namespace ddpdoctor::program {

enum class OwnOrder : std::uint8_t {
  kFixed,      // a fixed order, or none of the others is known
  kSet,        // a set or frozenset: ordered by hashes, which depend on PYTHONHASHSEED
  kDirectory,  // the file system's order of directory entries
  kHash,       // sorted by hash() or id()
  kRandom,     // shuffled or random
};

/// "a set", "a directory listing": the words after "the order of".
std::string_view name_of(OwnOrder order);

/// A loop or comprehension around a line.
struct LoopInOwnOrder {
  OwnOrder order = OwnOrder::kFixed;
  int line = 0;                     // its header
  std::string over{};               // the iterable: "names"
  std::vector<OriginStep> chain{};  // the lines from the header to the set, listing or sort
};

/// The innermost loop around `line`, in its function, that provably has such an order; `callers` as
/// in Asked.
std::optional<LoopInOwnOrder> loop_in_own_order(const Asked& asked, const Sources& sources);

}  // namespace ddpdoctor::program
