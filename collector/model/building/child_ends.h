// SPDX-License-Identifier: Apache-2.0
// Ends of children as their parents saw them, the only witness of a SIGKILL, and who was ended by
// its launcher. A launcher ends the other ranks when one has fallen, by the same signal at times,
// and asks for their ends in any order: when the signals were sent tells who fell by itself.
#pragma once

#include <map>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// By pid.
std::map<pid_t, Exit> child_ends(const std::vector<sources::Recording>& recordings);

/// Facts "cleaned-up": processes that were not on their way out when their launcher ended them, and
/// that it ended because the job was over.
std::vector<Fact> cleaned_up(const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
