// SPDX-License-Identifier: Apache-2.0
// `while self.todo: time.sleep(5)`: a loop that polls state which another thread of the process
// changes.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// `other` is in a function that changes something tested by the `while` around `thread`'s user
/// line ("self.todo.popleft()", "done = True").
bool changes_what_is_polled(const model::JobModel& job, const model::Thread& other,
                            const model::Thread& thread);

}  // namespace ddpdoctor::graph
