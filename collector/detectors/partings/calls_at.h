// SPDX-License-Identifier: Apache-2.0
// Calls in the source, for frames that are in them.
#pragma once

#include "collector/model/job_model.h"
#include "collector/program/syntax/node.h"

namespace ddpdoctor::detectors {

/// The call at a frame's line that runs the function of the next frame inwards: by its name, else
/// the only one there that no library and no `def` of a plain name answers for. No node where
/// several could.
program::Node call_to(const model::JobModel& job, const model::CallSite& at,
                      const model::CallSite& next);

/// The expression is reached through the first parameter of the method around the line.
bool is_of_receiver(const program::SourceText& lines, int line, program::Node expression);

}  // namespace ddpdoctor::detectors
