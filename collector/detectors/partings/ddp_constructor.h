// SPDX-License-Identifier: Apache-2.0
// The calls that DistributedDataParallel makes when it is built, known by their order alone: an
// all_gather of one int64 (how many parameters), a broadcast of int64 (their shapes), then
// broadcasts of the values, all at one line of the user's.
#pragma once

#include "collector/detectors/partings/disagreed.h"

namespace ddpdoctor::detectors {

/// What such a call carries.
enum class BuiltWith { kNothing, kShapes, kValues };

/// kNothing: the call is none of DDP's constructor.
BuiltWith built_with(const graph::Examination& examination, const model::CollectiveCall& call);

/// The ranks disagree in DDP's constructor: their models do, and the call is not to blame.
bool is_between_models(const graph::Examination& examination, const graph::Divergence& divergence);

}  // namespace ddpdoctor::detectors
