// SPDX-License-Identifier: Apache-2.0
// Horovod pairs tensors by their names: ranks that submit tensors of different names, or in
// different order, wait for each other.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

/// A warning of Horovod lists tensors of which each side submitted some that the other has not.
std::optional<Finding> different_tensors(const model::JobModel& job, std::string_view kind);

}  // namespace ddpdoctor::detectors
