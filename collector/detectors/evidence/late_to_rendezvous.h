// SPDX-License-Identifier: Apache-2.0
// Running ranks that have not called init_process_group(): they wait for something before it, and
// all others wait for them in it.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Rank 0, which opens the store of this job, runs and has not called init_process_group() yet: a
/// missing listener proves nothing about the address.
bool server_is_to_come(const graph::Examination& examination);

/// The ranks that wait before it; empty if some rank works, is unobserved, or is past it.
model::RankSet late_to_rendezvous(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
