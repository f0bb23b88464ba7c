// SPDX-License-Identifier: Apache-2.0
// A rank that gave up through MPI: it called MPI_Abort, or MPI ended it in a failed call. Both end
// the whole job.
#pragma once

#include <vector>

#include "collector/detectors/evidence/suspects.h"

namespace ddpdoctor::detectors {

/// The ranks that gave up first, at one line; empty if none did, or if they gave up because others
/// had exited or not arrived.
std::vector<Suspect> ended_by_mpi(const graph::Examination& examination);

/// The fix for such an end.
std::string_view advice_on_end_by_mpi();

/// A call in which a rank waited until it called MPI_Abort, and the ranks that had not reached it.
struct GivenUp {
  model::Rank rank = 0;
  std::string group = {};
  std::int64_t sequence = 0;
  std::string operation = {};
  model::RankSet waiting = {};
  model::RankSet missing = {};
};
std::optional<GivenUp> given_up(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
