// SPDX-License-Identifier: Apache-2.0
// Finds the call in the source that a stack frame is executing.
#pragma once

#include "collector/model/job_model.h"
#include "collector/program/syntax/node.h"

namespace ddpdoctor::detectors {

/// The call at the frame's line that runs the function of the next inner frame. It is found by the
/// name of that function; otherwise it is the only call there whose target the source does not fix.
/// Returns no node if several calls qualify.
program::Node call_to(const model::JobModel& job, const model::CallSite& at,
                      const model::CallSite& next);

/// The expression starts with the first parameter (`self`) of the method around the line.
bool is_of_receiver(const program::SourceText& lines, int line, program::Node expression);

}  // namespace ddpdoctor::detectors
