// SPDX-License-Identifier: Apache-2.0
// Ranks that run and have not come to init_process_group: they wait for something before it, and
// all others wait for them in it.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Rank 0 opens the store of this job, runs, and is not in init_process_group yet: that nobody
/// listens says nothing of the address.
bool server_is_to_come(const graph::Examination& examination);

/// Those who wait before it; empty when some rank is at work, is not seen, or is past it.
model::RankSet late_to_rendezvous(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
