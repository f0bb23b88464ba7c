// SPDX-License-Identifier: Apache-2.0
// What keeps gradients from being reduced: a backward below `model.no_sync()`, on purpose, and a
// branch of the model that leaves parameters out.
#pragma once

#include <optional>

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// What decides on each rank by itself whether a backward reduces its gradients: the condition
/// around a no_sync() in the files of this path, unless it is alike on all ranks (a step counter).
std::optional<Branch> own_choice_of_sync(const model::JobModel& job, const Path& path);

/// A condition in a forward() that leaves part of the model out, when there is exactly one; those
/// that only raise are none.
std::optional<model::CallSite> branch_in_forward(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
