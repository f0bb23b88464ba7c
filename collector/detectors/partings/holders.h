// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for nothing of the job, while others wait behind them.
#pragma once

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// Reduces the ranks that did not make a call to those at which the waiting ends (a child, a
/// thread, a lock or a person of their own), if all others wait for their GPUs or for ranks.
/// Returns false and changes nothing if there are none.
bool narrow_to_holders(const graph::Examination& examination, Side& missing);

}  // namespace ddpdoctor::detectors
