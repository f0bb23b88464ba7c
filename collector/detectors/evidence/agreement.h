// SPDX-License-Identifier: Apache-2.0
// Questions that many detectors share: who waits, who was not seen, which ranks agree with each
// other and who is alone.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Ranks that did or said the same.
struct Camp {
  model::RankSet ranks;
  std::string key;
};

/// Ranks grouped by what they say, the largest camp first (equal sizes: lowest rank first).
std::vector<Camp> camps(const std::map<model::Rank, std::string>& said);

/// True when the first camp is larger than all the others together or than each of them; a tie of
/// the two largest is no majority.
bool has_majority(const std::vector<Camp>& camps);

/// Everyone outside the largest camp; empty when there is no majority.
model::RankSet minority(const std::vector<Camp>& camps);

/// Ranks whose standing answers yes.
model::RankSet ranks_where(const graph::Examination& examination,
                           const std::function<bool(const graph::Standing&)>& question);

/// Ranks in something that only other ranks can end.
model::RankSet waiting_ranks(const graph::Examination& examination);

/// Ranks that wait for no other rank and are at work: they compute, get on, or pause for a moment.
/// The others may simply be waiting for them.
model::RankSet working_ranks(const graph::Examination& examination);

/// Ranks that we have no evidence about: neither a stack nor an end nor a recorded call.
model::RankSet unobserved_ranks(const graph::Examination& examination);

/// Members of the group that have not come to this sequence although we know how far they came.
model::RankSet absent_from(const graph::GroupView& group, std::int64_t sequence);

/// A rank is dead, has exited or never came: its peers' connections and kernels fail because of
/// that.
bool somebody_is_gone(const graph::Examination& examination);

/// A call that failed or never ended because members had not come to it when the job was over.
struct Forsaken {
  std::string group;
  std::int64_t sequence = 0;
  std::string operation = {};
  model::RankSet ranks = {};    // who called
  model::RankSet missing = {};  // who never did
};

/// Empty while the job runs.
std::vector<Forsaken> forsaken_calls(const graph::Examination& examination);

/// Nothing moves, or it is over, or nobody could tell; false only when movement was seen.
bool may_hang(const graph::Examination& examination);

/// Fewer than two facts make a finding likely, two make it certain; none a resemblance.
Confidence confidence_of(int facts);

/// The lower of two.
Confidence at_most(Confidence confidence, Confidence limit);

}  // namespace ddpdoctor::detectors
