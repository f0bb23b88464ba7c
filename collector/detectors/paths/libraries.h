// SPDX-License-Identifier: Apache-2.0
// What frames of training libraries show about a rank: its position in their loops and modules.
#pragma once

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// A frame of fully sharded modules (FSDP, ZeRO-3) below the user's innermost line.
bool in_sharded_module(const graph::Standing& standing);

/// The user's line asks the sharded library itself for parameters (state_dict, summon_full_params,
/// GatheredParameters): no module runs there.
bool asks_for_shards(const graph::Standing& standing);

/// `rest` gathers the parameters of a module; `odd` may have skipped that module, because it does
/// not ask for parameters itself.
bool skips_sharded_module(const graph::Standing* odd, const graph::Standing* rest);

/// This line of the rank's stack called a sharded module, inside which another one gathers: a rank
/// that is elsewhere in the function of the line left out the whole model.
bool gathers_inside_another_unit(const graph::Standing& standing, const model::CallSite& line);

/// Inside generate() of a language model.
bool in_generate(const model::JobModel& job, const graph::Standing& standing);

/// The user's own generation: above a sharded module, the line of a loop that passes the module its
/// previous result and that a test ends; nullptr outside such a loop.
const model::Frame* own_generation(const model::JobModel& job, const graph::Standing& standing);

/// The position in Lightning's fit() or Hugging Face's train(): among the batches of an epoch, or
/// after them, in the final validation and the hooks between epochs. kAfterFit: in the code after
/// all epochs.
enum class TrainerPlace { kUnknown, kInEpoch, kBetweenEpochs, kAfterFit };

/// kUnknown for nullptr.
TrainerPlace place_in_trainer(const graph::Standing* standing);

}  // namespace ddpdoctor::detectors
