// SPDX-License-Identifier: Apache-2.0
// A job on several hosts is diagnosed with numbers of its own for every process, and told with the
// hosts' names.
#pragma once

#include "collector/diagnosis/diagnosis.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::diagnosis {

/// As `diagnose`; where processes of several hosts are in the job, sentences say on which host a
/// process or a culprit runs. `job` must outlive the diagnosis and is afterwards as it was.
Diagnosis diagnose_hosts(model::JobModel& job);

}  // namespace ddpdoctor::diagnosis
