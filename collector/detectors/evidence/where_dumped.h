// SPDX-License-Identifier: Apache-2.0
// The lines at which dumped processes sleep, if the dumps show no cause: people dump a process to
// learn what it waits for.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The lines at which dumped processes sleep; nothing if a process is at work, if none has a line,
/// or if more than one snapshot exists.
std::optional<Finding> where_dumped(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
