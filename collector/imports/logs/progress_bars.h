// SPDX-License-Identifier: Apache-2.0
// Progress bars of tqdm in the output of a job in which a wait timed out: a bar that moved during
// the wait shows work of a process that did not wait.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// torch or gloo reports in this line that a wait for another rank ended by its timeout.
bool ends_wait(std::string_view line);

/// Adds a fact progress-bar for each bar that is not at its end and moved until shortly before the
/// watchdog of a rank ended the rank's wait, or after the rank began to print its timeout; a fact
/// unfinished-bar for one that was last drawn before; a fact last-bar for a bar with which any log
/// ends. `text` still contains carriage returns and bars.
void read_progress_bars(std::string_view text, model::JobModel& job);

}  // namespace ddpdoctor::imports
