// SPDX-License-Identifier: Apache-2.0
// rendezvous-incomplete although all ranks have arrived: init_process_group() was given different
// addresses (init_method="tcp://…" or "file://…"), and each rank waits for the others at its own.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Nothing if the addresses are equal or not in the call (env://, a user's own store).
Findings rendezvous_places(const graph::Examination& examination, Confidence still);

}  // namespace ddpdoctor::detectors
