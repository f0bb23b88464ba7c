// SPDX-License-Identifier: Apache-2.0
// Frames of libraries that call one given function and decide nothing: decorators, module calls,
// thread and process starts.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// True if the function calls the function below it exactly once.
bool only_wraps(const model::Frame& frame);

}  // namespace ddpdoctor::detectors
