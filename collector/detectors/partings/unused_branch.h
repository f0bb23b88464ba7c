// SPDX-License-Identifier: Apache-2.0
// The condition under which a model's forward does not use some of its parameters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The condition around the use of a module or parameter, by the names of the parameters that got
/// no gradient ("photos.encode.0.bias"): one that may differ between ranks. nullopt if there is
/// none, or more than one and none is known to be each rank's own.
std::optional<model::CallSite> branch_around_parameters(const model::JobModel& job,
                                                        const std::vector<std::string>& names);

}  // namespace ddpdoctor::detectors
