// SPDX-License-Identifier: Apache-2.0
// Ranks whose process no longer exists and whose exit was not observed.
#pragma once

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Ranks without a process, although others are past the rendezvous, which needed them.
model::RankSet vanished(const graph::Examination& examination);

/// The same while torchrun is running, which would have ended the others if they had failed.
model::RankSet gone_under_torchrun(const graph::Examination& examination);

/// A rank waits in the rendezvous and no call has completed: not all ranks have reached it. Others
/// may be past it, because over NCCL only the rank that holds the store waits for all.
bool is_rendezvous_open(const graph::Examination& examination);

/// The snapshot covered whole machines: it contains a launcher, or says what was observed. A
/// handwritten list of some ranks does not show that the others have exited.
bool looked_at_all(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
