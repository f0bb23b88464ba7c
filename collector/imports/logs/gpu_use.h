// SPDX-License-Identifier: Apache-2.0
// How busy the GPUs are, as nvidia-smi prints it or a person retells it beside a dump: a GPU at
// 100 % runs a kernel, so that its host need not be at work.
#pragma once

#include <span>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Adds facts of the kind model::kGpuUse with the percentage of each GPU: from nvidia-smi's table,
/// its CSV ("0, 100 %, 118.21 W"), "GPU0 98% 131W", "all 4 GPUs at 100 %". Of several lists, the
/// newest counts.
void read_gpu_use(std::span<const std::string_view> lines, model::JobModel& job);

}  // namespace ddpdoctor::imports
