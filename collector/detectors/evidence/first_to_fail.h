// SPDX-License-Identifier: Apache-2.0
// For jobs known only from logs and error files: ranks that failed as a consequence of another's
// exit, and ranks that exited without a message.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A rank whose last traceback is a consequence of another rank's failure, and that has no other.
struct FeltAnEnd {
  std::optional<model::Rank> rank = {};  // unknown: no line of the log names it
  bool lost_its_connection = false;
  bool timed_out = false;      // it waited for another rank until its timeout
  model::CallSite place = {};  // the line it was at
  std::string exception = {};
  model::CallSite store_wait = {};  // torch's line that waited for a key of the store
  bool waits_for_children = false;  // in the join of processes that it had started
};
/// Ordered by rank, those without one last; empty if any rank raised for its own reasons.
std::vector<FeltAnEnd> felt_an_end(const model::JobModel& job);

/// The known ranks of these that lost their connection.
model::RankSet lost_their_connection(const std::vector<FeltAnEnd>& all);

/// A rank that exited with its own status according to a launcher, and that wrote no traceback.
struct Failed {
  model::Rank rank = 0;
  int status = 0;
  /// The launcher names it as the first, or others failed after it; and no traceback can belong to
  /// it.
  bool sure = true;
};
/// Only the first one if the launcher names it. Empty if any rank raised.
std::vector<Failed> failed_without_word(const graph::Examination& examination);

/// The ranks of the other nodes, if the logs name the ranks that torchrun's agents started alone.
model::RankSet started_by_other_agents(const model::JobModel& job);

/// Ranks that wrote to a file of their own but left no error file although others did, else no
/// traceback.
model::RankSet silent_ranks(const model::JobModel& job, const std::vector<FeltAnEnd>& felt);

}  // namespace ddpdoctor::detectors
