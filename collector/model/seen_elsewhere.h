// SPDX-License-Identifier: Apache-2.0
// Merges captures of several machines: each says that the other ranks run elsewhere.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Removes from the coverage the sentences about unseen ranks for which the job has a process. A
/// capture stores sentences, so these are parsed (coverage.cc and job_tree.cc write them). Does the
/// same for ranks in `answered`: their machine was examined, so a rank without a process there is
/// absent, not unobserved.
void forget_seen_elsewhere(JobModel& job, const RankSet& answered = {});

/// The ranks whose machines were examined, if a capture says that others run elsewhere.
RankSet ranks_answered_for(const JobModel& job);

}  // namespace ddpdoctor::model
