// SPDX-License-Identifier: Apache-2.0
// Diagnoses a job on several hosts: every process gets a unique number for the diagnosis, and the
// report names the hosts.
#pragma once

#include "collector/diagnosis/diagnosis.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::diagnosis {

/// Like `diagnose`; if the job has processes on several hosts, sentences name the host of a process
/// or culprit. `job` must outlive the diagnosis and is restored before the function returns.
Diagnosis diagnose_hosts(model::JobModel& job);

}  // namespace ddpdoctor::diagnosis
