// SPDX-License-Identifier: Apache-2.0
// What prevents the reduction of gradients: a backward inside `model.no_sync()`, on purpose, and a
// branch of the model that does not use some parameters.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// The fix for parameters that have no gradient on some ranks.
inline constexpr std::string_view kFindUnused =
    "Pass find_unused_parameters=True to DistributedDataParallel, or make the loss depend on every "
    "parameter (add 0 * unused.sum()).";

/// The condition with which each rank decides by itself whether a backward reduces its gradients:
/// the one around a no_sync() in the files of this path, unless it is equal on all ranks (a step
/// counter).
std::optional<Branch> own_choice_of_sync(const model::JobModel& job, const Path& path);

/// A condition in a forward() that skips part of the model, if there is exactly one; conditions
/// that only raise do not count.
std::optional<model::CallSite> branch_in_forward(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
