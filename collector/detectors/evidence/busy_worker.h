// SPDX-License-Identifier: Apache-2.0
// A rank that waits for a batch of a DataLoader worker which works.
#pragma once

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// It waits for a batch on which a DataLoader worker works: dataloader-worker-stuck reports it if
/// the worker does not return.
bool its_worker_is_busy(const model::JobModel& job, const graph::Standing* standing);

}  // namespace ddpdoctor::detectors
