// SPDX-License-Identifier: Apache-2.0
// Captures of several machines in one job: each says of the others' ranks that they run elsewhere.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Takes out of the coverage what is said of ranks as unseen that a process of the job shows. A
/// capture holds sentences, so these are read again (coverage.cc and job_tree.cc write them).
/// So is what is said of ranks in `answered`: their machine was looked at, and who has no process
/// there is absent, not unobserved.
void forget_seen_elsewhere(JobModel& job, const RankSet& answered = {});

/// The ranks whose machines were looked at, where a capture says that others run elsewhere.
RankSet ranks_answered_for(const JobModel& job);

}  // namespace ddpdoctor::model
