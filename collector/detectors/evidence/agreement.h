// SPDX-License-Identifier: Apache-2.0
// Queries that many detectors share: which ranks wait, which are unobserved, which agree with each
// other, and which differ.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Ranks with the same value.
struct Camp {
  model::RankSet ranks;
  std::string key;
};

/// Ranks grouped by value, the largest group first (equal sizes: lowest rank first).
std::vector<Camp> camps(const std::map<model::Rank, std::string>& said);

/// True if the first group is larger than each of the others; if the two largest are equal, there
/// is no majority.
bool has_majority(const std::vector<Camp>& camps);

/// All ranks outside the largest group; empty if there is no majority.
model::RankSet minority(const std::vector<Camp>& camps);

/// Ranks whose standing satisfies the predicate.
model::RankSet ranks_where(const graph::Examination& examination,
                           const std::function<bool(const graph::Standing&)>& question);

/// Ranks in a wait that only other ranks can end. Computed once per examination.
const model::RankSet& waiting_ranks(const graph::Examination& examination);

/// Ranks that wait for no other rank and work: they compute, make progress, or pause briefly. The
/// other ranks may only be waiting for them. Computed once per examination.
const model::RankSet& working_ranks(const graph::Examination& examination);

/// Ranks without any evidence: no stack, no exit, no recorded call.
model::RankSet unobserved_ranks(const graph::Examination& examination);

/// Members of the group with known progress that have not reached this sequence number.
model::RankSet absent_from(const graph::GroupView& group, std::int64_t sequence);

/// Some rank was killed, has exited or never started: that alone makes its peers' connections and
/// kernels fail.
bool somebody_is_gone(const graph::Examination& examination);

/// A call that failed or never completed because some members had not called it when the job ended.
struct Forsaken {
  std::string group;
  std::int64_t sequence = 0;
  std::string operation = {};
  model::RankSet ranks = {};    // ranks that called it
  model::RankSet missing = {};  // ranks that did not
};

/// Empty while the job runs.
std::vector<Forsaken> forsaken_calls(const graph::Examination& examination);

/// True if nothing makes progress, the job has ended, or progress is unknown; false only if
/// progress was observed.
bool may_hang(const graph::Examination& examination);

/// No fact: possible; one fact: likely; two or more: certain.
Confidence confidence_of(int facts);

/// The lower of two.
Confidence at_most(Confidence confidence, Confidence limit);

}  // namespace ddpdoctor::detectors
