// SPDX-License-Identifier: Apache-2.0
// Conditions that read an environment variable with different values on the ranks.
#pragma once

#include <string>
#include <string_view>

#include "collector/model/job_model.h"
#include "collector/program/origin/origin.h"

namespace ddpdoctor::detectors {

/// The name of such a variable, read by the condition itself or through a name that a line of its
/// file binds to it (`debug = os.getenv("DEBUG")`); empty if there is none.
std::string unlike_variable(const model::JobModel& job, const program::SourceText& lines,
                            std::string_view condition, int line);

/// The same for what a slice depends on.
std::string unlike_variable(const model::JobModel& job, const program::Origin& origin);

/// "RESUME is not set on rank 1", "MODE has one value on rank 0 and another on ranks 1-3".
std::string how_unlike(const model::JobModel& job, std::string_view variable);

}  // namespace ddpdoctor::detectors
