// SPDX-License-Identifier: Apache-2.0
// Where the side of a divergence is in Lightning's fit() or Hugging Face's train(). A host that has
// run ahead of its GPU may stand behind the trainer's last call.
#pragma once

#include "collector/detectors/partings/parting.h"
#include "collector/detectors/paths/libraries.h"

namespace ddpdoctor::detectors {

/// The user's call in which the trainer's loop runs; the side must have a stack.
model::CallSite call_of_trainer(const Side& side);

/// By the side's host. One that has run ahead of a call which the trainer made, out of the line in
/// which the other side's trainer runs, has left the loop.
TrainerPlace place_of(const Side& side, const Side& other);

}  // namespace ddpdoctor::detectors
