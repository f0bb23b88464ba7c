// SPDX-License-Identifier: Apache-2.0
// rendezvous-incomplete although all ranks have come: init_process_group was given different places
// (init_method="tcp://…" or "file://…"), and each waits for the others at its own.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Nothing when the places agree or are not told by the call (env://, a store of the user's own).
Findings rendezvous_places(const graph::Examination& examination, Confidence still);

}  // namespace ddpdoctor::detectors
