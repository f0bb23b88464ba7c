// SPDX-License-Identifier: Apache-2.0
// The calls of DistributedDataParallel's constructor, recognized by their order alone: an
// all_gather of one int64 (the number of parameters), a broadcast of int64 (their shapes), then
// broadcasts of the values, all from one user line.
#pragma once

#include "collector/detectors/partings/disagreed.h"

namespace ddpdoctor::detectors {

/// The content of such a call.
enum class BuiltWith { kNothing, kShapes, kValues };

/// kNothing: the call is not part of DDP's constructor.
BuiltWith built_with(const graph::Examination& examination, const model::CollectiveCall& call);

/// The ranks disagree inside DDP's constructor: their models differ, and the call is not the cause.
bool is_between_models(const graph::Examination& examination, const graph::Divergence& divergence);

}  // namespace ddpdoctor::detectors
