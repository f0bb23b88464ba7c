// SPDX-License-Identifier: Apache-2.0
// lock-deadlock from native frames alone: a thread waits for a mutex of a library that its own
// outer frames are inside of, or two threads are each inside the library whose mutex the other
// wants.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// At most one finding; `still` is the confidence that the hang allows.
Findings native_deadlocks(const graph::Examination& examination, const model::Process& process,
                          Confidence still);

}  // namespace ddpdoctor::detectors
