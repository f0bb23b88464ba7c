// SPDX-License-Identifier: Apache-2.0
// Where ranks diverge: for each group, the lowest sequence number at which they disagree on the
// next call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/graph/history.h"
#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// How far one rank has got in one group; both numbers are cumulative, from the recorder's own
/// counters.
struct RankProgress {
  model::Rank rank = 0;
  std::int64_t enqueued = 0;
  std::int64_t completed = 0;
  std::int64_t first_known = 1;  // earlier records were overwritten in the ring
};

/// Ranks that made the same call at a divergence. `call` is absent for ranks that have not reached
/// it.
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
  /// Lowest sequence number with a different operation, shape, dtype, reduce op, root or splits, or
  /// which some members have not reached while others wait in it.
  std::optional<Divergence> first_divergence;
  /// Lowest sequence number at which ranks made the same operation from different user lines
  /// (rank-conditional calls that happened to match). A hint, never a finding by itself.
  std::optional<Divergence> first_site_divergence;
  /// The lowest sequence number of each kind of disagreement, in ascending order; first_divergence
  /// is the first.
  std::vector<Divergence> disagreements;

  [[nodiscard]] const RankProgress* progress_of(model::Rank rank) const;
  [[nodiscard]] const Divergence* disagreement(Disagreement about) const;
  /// The lowest sequence number from which the ranks do different things: another operation, a call
  /// of another size, or a missing rank.
  [[nodiscard]] const Divergence* end_of_agreement() const;
};

/// How one rank's calls relate to another's from a sequence number on, judged by their lines.
enum class Shift {
  kUnknown,
  kExtra,     // the first rank made one additional call here
  kSkipped,   // the first rank skipped the call that the other made here
  kReplaced,  // both continue with equal calls: two branches with one call each
};

Shift shift_between(const History& history, const std::string& group, std::int64_t sequence,
                    model::Rank rank, model::Rank other);

/// One view for each group with evidence; the world first.
std::vector<GroupView> group_views(const model::JobModel& job,
                                   const std::vector<Standing>& standings);
std::vector<GroupView> group_views(const model::JobModel& job,
                                   const std::vector<Standing>& standings, const History& history);

std::string_view disagreement_name(Disagreement about);

}  // namespace ddpdoctor::graph
