// SPDX-License-Identifier: Apache-2.0
// What a rank did after it had printed a traceback.
#pragma once

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The rank continued after it had printed a traceback: it handled the exception, or only one of
/// its threads ended.
bool lived_on(const model::JobModel& job, model::Rank rank);

/// It gave up its work and waits at the end of the program: in destroy_process_group, in an exit
/// handler. False without a standing.
bool waits_at_its_end(const graph::Standing* standing);

}  // namespace ddpdoctor::detectors
