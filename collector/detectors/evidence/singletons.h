// SPDX-License-Identifier: Apache-2.0
// Processes of one launch that are each alone: MPI (or the program) found no launcher and made a
// world of one rank for each.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

std::optional<Finding> singletons(const model::JobModel& job, std::string_view kind);

}  // namespace ddpdoctor::detectors
