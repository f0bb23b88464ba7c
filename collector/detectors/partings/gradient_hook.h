// SPDX-License-Identifier: Apache-2.0
// Collectives that a hook of the user's makes in backward (register_comm_hook, register_hook): how
// many there are says nothing of the number of steps.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets branch and cause where one side waits for a call that a hook made on autograd's thread,
/// under a condition of the rank's own data.
bool read_gradient_hook(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
