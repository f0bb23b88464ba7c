// SPDX-License-Identifier: Apache-2.0
// Serving frameworks name a process by its position in the parallel layout instead of its rank:
// "TP3", "PP1 TP0", "Worker_DP0_PP1_TP2_EP3", "sglang::scheduler_TP0_PP1".
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "collector/model/rank_set.h"

namespace ddpdoctor::imports {

/// Dimension → index: {"PP": 1, "TP": 2}.
using Coordinates = std::map<std::string, int>;

/// The coordinates if all words of a text look like "TP3" (separated by blanks or underscores);
/// otherwise empty.
Coordinates coordinates_of(std::string_view words);

/// "PP1 TP0": in people's notation.
std::string said(const Coordinates& place);

/// The processes that such coordinates describe, seen or not.
struct Layout {
  std::map<Coordinates, model::Rank> ranks;  // of those seen
  std::size_t least = 0;                     // number of all, at least
  bool gaps = false;  // places are missing: the sizes are the largest numbers seen
};

/// Ranks count data-parallel replicas outermost, then pipeline stages, then tensor-parallel ranks.
/// With data-parallel attention, "DP" repeats "TP": it counts only if two processes differ in
/// nothing else. No ranks if two processes cannot be distinguished.
Layout layout_of(const std::set<Coordinates>& places);

/// The ranks of a layout without gaps; otherwise empty.
std::map<Coordinates, model::Rank> ranks_of(const std::set<Coordinates>& places);

}  // namespace ddpdoctor::imports
