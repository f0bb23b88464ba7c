// SPDX-License-Identifier: Apache-2.0
// Hung or slow: did anything move between the observations?
#pragma once

#include <optional>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// What the evidence says about movement; seconds are given when the job is still.
struct Movement {
  Progress progress = Progress::kUnknown;
  std::optional<double> seconds_without_progress;
};

/// Compares the two newest observations. Moving: a collective was enqueued between them, a rank
/// appeared or ended, or the Python stack (files and lines) of some rank's main thread changed.
/// Still: none of that. A rank that computes on one line, or sleeps in a loop of one line, is still
/// here; whether it is on CPU is a detector's question. With one observation, or none that can be
/// compared: still when every rank's newest collective is older than two seconds and no rank is on
/// CPU, else unknown. `collectives_advanced`: recorders gained entries between the looks.
Movement movement(const JobModel& job, bool collectives_advanced = false);

/// True or false when the main threads can be compared, nothing when one of them could not be read.
std::optional<bool> same_place(const Process& before, const Process& now);

}  // namespace ddpdoctor::model
