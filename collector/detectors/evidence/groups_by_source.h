// SPDX-License-Identifier: Apache-2.0
// Without records: hosts that ran ahead of their devices launched their last calls in two groups,
// which the source makes with the same members. Each side needs the other in its own group.
#pragma once

#include <optional>

#include "collector/graph/examination.h"
#include "collector/graph/launched_call.h"

namespace ddpdoctor::detectors {

struct RanksInGroup {
  model::RankSet ranks;
  graph::LaunchedCall call;
};

struct TwoGroups {
  RanksInGroup first;
  RanksInGroup second;
};

/// Nothing unless every rank is in one of exactly two such groups, at one line in each.
std::optional<TwoGroups> groups_by_source(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
