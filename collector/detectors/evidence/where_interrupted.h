// SPDX-License-Identifier: Apache-2.0
// Processes known only from the tracebacks of a Ctrl-C: where they were.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The lines at which all processes were interrupted. Names the context that lets one process go
/// first, if they were entering one.
std::optional<Finding> where_interrupted(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
