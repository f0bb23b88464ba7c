// SPDX-License-Identifier: Apache-2.0
// What CUPTI told of a rank's GPU in a diagnosis window: facts "gpu-kernel" (stream, place, kernel,
// finished), "gpu-behind" (what a kernel waits for in another stream), "gpu-wait" (of a thread of
// the host) and "gpu-window" (open, why).
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// The newest of each fact.
void add_gpu_facts(JobModel& job, const sources::Recording& recording);

struct GpuSentence {
  Rank rank = 0;
  std::string text;  // "ncclDevKernel_AllReduce is queued behind ampere_sgemm of another stream"
};

/// What NCCL's kernels are queued behind and who waits for a stream of theirs, in the order of
/// ranks.
std::vector<GpuSentence> gpu_queue(const JobModel& job);

/// How often CUDA graphs with calls of NCCL were launched, by ranks: what runs inside them is not
/// compared. Empty when there are none.
std::string graph_launches(const JobModel& job);

}  // namespace ddpdoctor::model
