// SPDX-License-Identifier: Apache-2.0
// What a dump without native frames shows of a process whose other threads are all idle: the thread
// that has the GIL, and its function.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The tool names the holder of the GIL of the only process, the holder is not its main thread, and
/// every other thread sleeps. Whether the holder computes or is blocked is not shown.
std::optional<Finding> told_gil_holder(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
