// SPDX-License-Identifier: Apache-2.0
// Determines which thread of a rank made a recorded call. A record has the functions around the
// call, but no thread id.
#pragma once

#include "collector/graph/history.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// False if no function around the call is on the stack of the thread. True if that is unknown: the
/// record or the stack has no user function, or they have only functions of different languages.
bool may_have_called(const model::Thread& thread, const model::CollectiveCall& record);

/// The newest call of this thread, if it has not finished; otherwise null.
const model::CollectiveCall* open_call_of(const model::Thread& thread, const Calls& calls);

}  // namespace ddpdoctor::graph
