// SPDX-License-Identifier: Apache-2.0
// What a rank waits for that is no other rank, in the words of the program it runs: an Event, an
// item of a queue, a process, the condition of a loop around a sleep.
#pragma once

#include <optional>
#include <string>

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// In words; `loop` is known where it sleeps in one.
struct WaitedFor {
  std::string doing;   // "waiting for a threading.Event"
  std::string advice;  // imperative: what to find out, and how to make it an error
  model::CallSite loop = {};
};

/// Nothing where the stack does not say it better than the activity's name.
std::optional<WaitedFor> waited_for(const model::JobModel& job, const graph::Standing& standing);

}  // namespace ddpdoctor::detectors
