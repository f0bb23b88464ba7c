// SPDX-License-Identifier: Apache-2.0
// What a rank waits for if it is not another rank, in terms of its program: an Event, a queue item,
// a process, the condition of a loop around a sleep.
#pragma once

#include <optional>
#include <string>

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// A description; `loop` is set if it sleeps in one.
struct WaitedFor {
  std::string doing;   // "waiting for a threading.Event"
  std::string advice;  // imperative: what to check, and how to make it an error
  model::CallSite loop = {};
};

/// Nothing if the stack shows no more than the name of the activity.
std::optional<WaitedFor> waited_for(const model::JobModel& job, const graph::Standing& standing);

}  // namespace ddpdoctor::detectors
