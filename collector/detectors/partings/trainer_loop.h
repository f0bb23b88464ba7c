// SPDX-License-Identifier: Apache-2.0
// A trainer's own loop over the batches (Lightning's fit, Hugging Face's train): some ranks are in
// it, others have left it, or are in a trainer's own call in it.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Because their data ended, or because the user's code told the trainer to stop
/// (`trainer.should_stop = True` under a test of the rank's own data). Inside the loop: because a
/// condition led one side to a call of the user's.
bool read_trainer_loop(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
