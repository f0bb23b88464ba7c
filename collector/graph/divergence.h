// SPDX-License-Identifier: Apache-2.0
// Where ranks part: for each group the lowest sequence number at which they disagree on what comes
// next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/graph/history.h"
#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// How far one rank has come in one group; both cumulative, from the recorder's own counters.
struct RankProgress {
  model::Rank rank = 0;
  std::int64_t enqueued = 0;
  std::int64_t completed = 0;
  std::int64_t first_known = 1;  // records before this one are gone (ring wrapped)
};

/// Ranks that did the same at a divergence. `call` is absent when these ranks have not come to it.
struct DivergentCall {
  model::RankSet ranks;
  std::optional<model::CollectiveCall> call;
};

/// What ranks disagree about.
enum class Disagreement {
  kOperation,
  kShape,
  kDtype,
  kReduceOp,
  kRoot,
  kSplits,
  kMissing,
  kCallSite
};

struct Divergence {
  std::string group;
  std::int64_t sequence = 0;
  Disagreement about = Disagreement::kMissing;
  std::vector<DivergentCall> calls;  // largest rank set first; the absent side last
};

struct GroupView {
  model::ProcessGroup group;
  std::vector<RankProgress> progress;  // members with evidence, in rank order
  /// Lowest sequence with differing operation, shape, dtype, reduce op, root or splits, or that
  /// some members lack while others wait in it.
  std::optional<Divergence> first_divergence;
  /// Lowest sequence at which the same operation came from different user lines on different ranks
  /// (rank-conditional calls that happened to pair up). A hint, never a finding by itself.
  std::optional<Divergence> first_site_divergence;
  /// The lowest sequence of every kind of disagreement, by sequence; first_divergence is the first
  /// of them.
  std::vector<Divergence> disagreements;

  [[nodiscard]] const RankProgress* progress_of(model::Rank rank) const;
  [[nodiscard]] const Divergence* disagreement(Disagreement about) const;
  /// The lowest sequence from which on the ranks do different things: another operation, another
  /// call of another size, or a missing rank.
  [[nodiscard]] const Divergence* end_of_agreement() const;
};

/// How one rank's calls relate to another's from a sequence number on, by the lines they come from.
enum class Shift {
  kUnknown,
  kExtra,     // the first rank made one call more here
  kSkipped,   // the first rank left out the call that the other made here
  kReplaced,  // both go on alike afterwards: two branches with one call each
};

Shift shift_between(const History& history, const std::string& group, std::int64_t sequence,
                    model::Rank rank, model::Rank other);

/// One view for each group that has evidence; the world first.
std::vector<GroupView> group_views(const model::JobModel& job,
                                   const std::vector<Standing>& standings);
std::vector<GroupView> group_views(const model::JobModel& job,
                                   const std::vector<Standing>& standings, const History& history);

std::string_view disagreement_name(Disagreement about);

}  // namespace ddpdoctor::graph
