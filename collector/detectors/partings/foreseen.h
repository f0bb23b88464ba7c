// SPDX-License-Identifier: Apache-2.0
// Explains the failure of a job by a warning that ddpdoctor gave while the job ran.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Ranks with fewer steps never reached the call in which ranks with more steps failed.
std::optional<Finding> foreseen_uneven(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
