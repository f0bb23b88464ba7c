// SPDX-License-Identifier: Apache-2.0
// NCCL's "Duplicate GPU detected": which ranks share which GPU.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// One finding for all lines and ranks; `fix` is the advice if one GPU is shared.
std::optional<Finding> shared_gpus(const graph::Examination& examination, std::string_view kind,
                                   std::string_view fix);

}  // namespace ddpdoctor::detectors
