// SPDX-License-Identifier: Apache-2.0
// Recognizes library frames that only call the function they were given: decorators, module calls,
// starts of threads and processes.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// True if the frame's file has only such functions.
bool only_wraps(const model::Frame& frame);

}  // namespace ddpdoctor::detectors
