// SPDX-License-Identifier: Apache-2.0
// The calls of each rank around the divergence, for the page to draw as lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

struct LaneCall {
  std::int64_t sequence = 0;
  std::string operation;
  bool over = false;            // completed or failed
  std::optional<double> begin;  // seconds since the oldest call of the lanes
  std::optional<double> end;    // the same; absent: not over, or unknown
  model::CallSite site;
};

/// Ranks that made the same calls from the same lines. Times are the earliest begin and the latest
/// end among them.
struct Lane {
  model::RankSet ranks;
  std::vector<LaneCall> calls;  // empty: the ranks are members and have no call in the window
  bool observed = true;         // false: no calls of these ranks were recorded at all
};

struct GroupLanes {
  std::string group;                     // ProcessGroup::id
  std::optional<std::int64_t> diverges;  // the sequence number at which the ranks diverge
  std::vector<Lane> lanes;               // the fewest ranks first
  std::size_t left_out = 0;              // ranks without a lane
  std::optional<double> now;             // end of a call that is not over, in the same seconds
};

/// Groups with diverging ranks first; at most 8 groups, 32 lanes and 40 calls each. Up to 16 ranks
/// have a lane each.
std::vector<GroupLanes> group_lanes(const diagnosis::Diagnosis& diagnosis);

}  // namespace ddpdoctor::viewer
