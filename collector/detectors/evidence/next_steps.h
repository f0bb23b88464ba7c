// SPDX-License-Identifier: Apache-2.0
// What to capture next when the evidence does not decide.
#pragma once

#include <string>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// One sentence for each thing that is missing, joined by blanks; `ask_nccl` adds `ncclras`.
std::string next_steps(const graph::Examination& examination, bool ask_nccl = false);

}  // namespace ddpdoctor::detectors
