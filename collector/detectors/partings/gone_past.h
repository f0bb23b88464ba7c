// SPDX-License-Identifier: Apache-2.0
// A pipeline stage that left out a call which it shares with others and continued: whatever message
// it waits for there, the others wait for it in that call.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// The odd ranks exchange messages of a later iteration, or further on in the same one.
bool went_past(const graph::Examination& examination, const Parting& parting);

/// For such a divergence: what let them continue without the call, if nothing else explains it.
void read_gone_past(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
