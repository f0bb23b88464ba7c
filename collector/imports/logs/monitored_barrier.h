// SPDX-License-Identifier: Apache-2.0
// torch.distributed.monitored_barrier() of gloo: rank 0 names the ranks that did not come; a rank
// that waits for rank 0 until the limit names rank 0.
#pragma once

#include <string_view>

#include "collector/imports/logs/c10d_reading.h"

namespace ddpdoctor::imports {

/// Reads a line that is about such a barrier; `place`: who wrote it, and the user's line above.
void read_monitored_barrier(std::string_view line, const Place& place, Reading& reading);

/// The call of each rank that reached it, and the ranks that did not.
void add_monitored_barrier(const Reading& reading, model::JobModel& job);

}  // namespace ddpdoctor::imports
