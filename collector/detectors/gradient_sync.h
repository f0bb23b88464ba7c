// SPDX-License-Identifier: Apache-2.0
// Gradient accumulation: a backward below `model.no_sync()` reduces nothing, on purpose.
#pragma once

#include <optional>

#include "collector/detectors/source_path.h"

namespace ddpdoctor::detectors {

/// What decides on each rank by itself whether a backward reduces its gradients: the condition
/// around a no_sync() in the files of this path, unless it is alike on all ranks (a step counter).
std::optional<Branch> own_choice_of_sync(const model::JobModel& job, const Path& path);

}  // namespace ddpdoctor::detectors
