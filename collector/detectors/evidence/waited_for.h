// SPDX-License-Identifier: Apache-2.0
// What a rank waits for if it is not another rank, in terms of its program: an Event, a queue item,
// a process, the condition of a loop around a sleep.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"
#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// A description; `loop` is set if it sleeps in one.
struct WaitedFor {
  std::string doing;   // "waiting for a threading.Event"
  std::string advice;  // imperative: what to check, and how to make it an error
  model::CallSite loop = {};
  model::CallSite inside = {};  // where the awaited thread is
  model::CallSite leaves = {};  // the line that leaves a function with the lock still taken
};

/// Nothing if the stack shows no more than the name of the activity.
std::optional<WaitedFor> waited_for(const model::JobModel& job, const graph::Standing& standing);

/// The loop it sleeps in, the line of the awaited thread, the line that has kept the lock.
void add_places(const WaitedFor& waited, Finding& finding);

}  // namespace ddpdoctor::detectors
