// SPDX-License-Identifier: Apache-2.0
// A rank that gave up through MPI: it called MPI_Abort, or MPI ended it in a failed call. Both end
// the whole job.
#pragma once

#include <string_view>
#include <vector>

#include "collector/detectors/evidence/suspects.h"

namespace ddpdoctor::detectors {

/// The ranks that gave up first, at one line; empty if none did, or if they gave up because others
/// had exited or not arrived.
std::vector<Suspect> ended_by_mpi(const graph::Examination& examination);

/// The fix for such an end.
std::string_view advice_on_end_by_mpi();

/// A finding of this kind: a rank waited for others until it called MPI_Abort, so the job ended
/// before its hang was seen. Empty if none did.
Findings given_up_on(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
