// SPDX-License-Identifier: Apache-2.0
// Hung or slow: whether anything changed between the observations.
#pragma once

#include <optional>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// What the evidence shows about progress; seconds are set when the job is still.
struct Movement {
  Progress progress = Progress::kUnknown;
  std::optional<double> seconds_without_progress;
};

/// Compares the two newest observations. Moving: a collective was enqueued between them, a rank
/// started or ended, or the Python stack (files and lines) of some rank's main thread changed.
/// Still: none of these; so a rank that computes on one line, or sleeps in a loop of one line, is
/// still, and detectors check whether it uses a CPU. With one observation, or none that can be
/// compared: still if every rank's newest collective is older than two seconds and no rank is on a
/// CPU, else unknown. `collectives_advanced`: recorders gained entries between the snapshots.
Movement movement(const JobModel& job, bool collectives_advanced = false);

/// True or false if the main threads can be compared, nothing if one of them could not be read.
std::optional<bool> same_place(const Process& before, const Process& now);

}  // namespace ddpdoctor::model
