// SPDX-License-Identifier: Apache-2.0
// What decides which function a call runs.
#pragma once

#include "collector/detectors/paths/source_path.h"
#include "collector/program/origin/origin.h"
#include "collector/program/syntax/node.h"

namespace ddpdoctor::detectors {

/// The origin of the callee of `call`, at `at` with these frames around it. If its receiver is
/// `self`, follows the callers to the call that passed the object.
program::Origin origin_of_callee(const model::JobModel& job, model::CallSite at, Path callers,
                                 program::Node call);

/// The line that chose, by its condition or key; the last line of the slice if none did; nullptr if
/// there is no line.
const program::OriginStep* choosing_step(const program::Origin& origin);

}  // namespace ddpdoctor::detectors
