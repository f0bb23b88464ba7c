// SPDX-License-Identifier: Apache-2.0
// Where serving frameworks name a process by its place in the parallel layout and not by its rank:
// "TP3", "PP1 TP0", "Worker_DP0_PP1_TP2_EP3", "sglang::scheduler_TP0_PP1".
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "collector/model/rank_set.h"

namespace ddpdoctor::imports {

/// By dimension: {"PP": 1, "TP": 2}.
using Coordinates = std::map<std::string, int>;

/// All words of a text are of the form "TP3" (separated by blanks or underscores); empty otherwise.
Coordinates coordinates_of(std::string_view words);

/// "PP1 TP0": how a person writes it.
std::string said(const Coordinates& place);

/// Ranks of these processes: data-parallel replicas outermost, then pipeline stages, then tensor
/// parallel ranks. With attention that is data parallel "DP" repeats what "TP" says: it counts only
/// where two processes differ in nothing else. Empty where two processes cannot be told apart or
/// there are gaps that leave the sizes unknown.
std::map<Coordinates, model::Rank> ranks_of(const std::set<Coordinates>& places);

}  // namespace ddpdoctor::imports
