// SPDX-License-Identifier: Apache-2.0
// Which thread of a rank made a recorded call: records hold the functions around a call, no number
// of a thread.
#pragma once

#include "collector/graph/history.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// False when no function around the call is on the stack of the thread. True if that is
/// unknown: one of the two shows no function of the user's, or they show different languages.
bool may_have_called(const model::Thread& thread, const model::CollectiveCall& record);

/// The newest call that this thread has begun and not finished; null when there is none.
const model::CollectiveCall* open_call_of(const model::Thread& thread, const Calls& calls);

}  // namespace ddpdoctor::graph
