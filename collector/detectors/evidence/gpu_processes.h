// SPDX-License-Identifier: Apache-2.0
// Which other ranks have memory on the GPU whose memory ran out: torch's message lists the
// processes, and NCCL's lines tell their ranks.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Accuses the ranks of the listed processes; nullopt if none of them is known as a rank.
std::optional<Finding> ranks_on_full_gpu(const graph::Examination& examination,
                                         std::string_view kind, std::string_view fix);

}  // namespace ddpdoctor::detectors
