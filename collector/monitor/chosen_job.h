// SPDX-License-Identifier: Apache-2.0
// The job that a pid means, for commands with a pid argument.
#pragma once

#include "collector/sources/processes/job_choice.h"

namespace ddpdoctor::monitor {

using sources::choose_job;
using sources::JobChoice;
using sources::JobFilter;
using sources::JobHere;
using sources::jobs_here;

}  // namespace ddpdoctor::monitor
