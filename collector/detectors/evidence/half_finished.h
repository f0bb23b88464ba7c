// SPDX-License-Identifier: Apache-2.0
// A collective that some ranks have finished and in which others wait.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// `undetermined` for an operation that no rank can finish before all ranks have called it: the
/// ranks that finished it called something else as that number, or a link lost its data.
std::optional<Finding> half_finished(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
