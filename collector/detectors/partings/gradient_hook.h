// SPDX-License-Identifier: Apache-2.0
// Collectives that a user's hook makes during backward (register_comm_hook, register_hook): their
// number does not show the number of steps.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets branch and cause if one side waits for a call that a hook made on autograd's thread under a
/// condition on the rank's own data.
bool read_gradient_hook(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
