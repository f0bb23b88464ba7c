// SPDX-License-Identifier: Apache-2.0
// The kernel's warnings about tasks that sleep without end, as facts "kernel-stack" like those of
// /proc/PID/stack.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// One fact for each warning about a program of Python: "functions", "modules", "state" D and
/// "blocked_seconds".
void read_hung_tasks(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
