// SPDX-License-Identifier: Apache-2.0
// What CUPTI recorded about a rank's GPU during a profiling window: facts "gpu-kernel" (stream,
// place, kernel, finished), "gpu-behind" (what a kernel waits for in another stream), "gpu-wait"
// (of a thread of the host) and "gpu-window" (open, why).
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// Adds the newest fact of each kind.
void add_gpu_facts(JobModel& job, const sources::Recording& recording);

struct GpuSentence {
  Rank rank = 0;
  std::string text;  // "ncclDevKernel_AllReduce is queued behind ampere_sgemm of another stream"
};

/// What NCCL's kernels are queued behind, and which threads wait for their streams, ordered by
/// rank.
std::vector<GpuSentence> gpu_queue(const JobModel& job);

/// The kernels that a rank launched before its newest kernel of NCCL in the same stream, back to
/// NCCL's one before; oldest first.
std::vector<std::string> launched_before(const JobModel& job, Rank rank);

/// The number of launches of CUDA graphs with NCCL calls, by rank. Empty if there are none.
std::string graph_launches(const JobModel& job);

}  // namespace ddpdoctor::model
