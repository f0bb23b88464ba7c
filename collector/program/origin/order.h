// SPDX-License-Identifier: Apache-2.0
// Whether a loop goes over something whose order is each process's own: a set of strings, the
// entries of a directory, a sort by hash().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/program/origin/origin.h"

namespace ddpdoctor::program {

enum class OwnOrder : std::uint8_t {
  kFixed,      // a fixed order, or not known to be another
  kSet,        // of a set or frozenset: by hashes, which PYTHONHASHSEED makes differ
  kDirectory,  // as the file system gives its entries
  kHash,       // sorted by hash() or id()
  kRandom,     // shuffled or drawn
};

/// "a set", "a directory listing": behind "the order of".
std::string_view name_of(OwnOrder order);

/// A loop or comprehension around a line.
struct LoopInOwnOrder {
  OwnOrder order = OwnOrder::kFixed;
  int line = 0;                     // its header
  std::string over{};               // "names": what it goes over
  std::vector<OriginStep> chain{};  // from there to the set, the listing, the sort
};

/// The innermost loop of the function around `line` that the source proves to be one; `callers` as
/// in Asked.
std::optional<LoopInOwnOrder> loop_in_own_order(const Asked& asked, const Sources& sources);

}  // namespace ddpdoctor::program
