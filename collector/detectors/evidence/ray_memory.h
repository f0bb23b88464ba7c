// SPDX-License-Identifier: Apache-2.0
// Processes that Ray's memory monitor killed because their node ran out of memory. The program
// learns it where it waits for their results.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The finding about them: task, pid and node, how full the node was, and its biggest processes.
/// Ray may retry a task: more than possible only if the program failed with this error.
std::optional<Finding> killed_by_ray(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
