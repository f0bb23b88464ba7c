// SPDX-License-Identifier: Apache-2.0
// What a trainer does after a step because the user's code asked for it on some ranks: it ends,
// evaluates, or saves.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/partings/cause.h"
#include "collector/program/libraries/libraries.h"

namespace ddpdoctor::detectors {

/// For Explanation::otherwise.
inline constexpr std::string_view kOrData =
    "Ranks whose data end at different steps would look the same: compare their batches.";

/// The test of the rank's own data around a user's line.
std::optional<Branch> own_test_around(const model::JobModel& job, const std::string& file,
                                      const program::SourceText& lines, int line);

/// The test under which the user's code asks the trainer for a task, or the value with which it
/// asks, if it is the rank's own.
std::optional<Branch> asked_by_user(const model::JobModel& job, program::TrainerTask task);

/// One side evaluates or saves, the other is among the batches, and the user's code asked for it.
bool read_asked_task(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
