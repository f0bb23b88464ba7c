// SPDX-License-Identifier: Apache-2.0
// What the frames of training libraries say of a rank: where in their loops and modules it is.
#pragma once

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// A frame of fully sharded modules (FSDP, ZeRO-3) below the user's innermost line.
bool in_sharded_module(const graph::Standing& standing);

/// Inside generate() of a language model.
bool in_generate(const model::JobModel& job, const graph::Standing& standing);

/// The user's own generation: above a sharded module the line of a loop that gives the module what
/// it returned one iteration before, and that a test ends; nullptr outside one.
const model::Frame* own_generation(const model::JobModel& job, const graph::Standing& standing);

/// Where Lightning's fit() or Hugging Face's train() is: among the batches of an epoch, or behind
/// them, in the validation that ends it and in the hooks between epochs. kAfterFit: in what it does
/// when all epochs are over.
enum class TrainerPlace { kUnknown, kInEpoch, kBetweenEpochs, kAfterFit };

/// Of nobody (nullptr) nothing is known.
TrainerPlace place_in_trainer(const graph::Standing* standing);

}  // namespace ddpdoctor::detectors
