// SPDX-License-Identifier: Apache-2.0
// A rank that gave up through MPI: it called MPI_Abort, or MPI ended it in a call that failed. Both
// end the whole job.
#pragma once

#include <vector>

#include "collector/detectors/evidence/suspects.h"

namespace ddpdoctor::detectors {

/// The ranks that gave up first, at one line; empty when none did, or when they did because others
/// had gone or had not come.
std::vector<Suspect> ended_by_mpi(const graph::Examination& examination);

/// What to do about such an end.
std::string_view advice_on_end_by_mpi();

/// A call in which a rank waited until it called MPI_Abort, and who had not come to it.
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
