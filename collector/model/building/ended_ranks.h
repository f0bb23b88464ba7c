// SPDX-License-Identifier: Apache-2.0
// Which of the processes that left nothing but their end were ranks: everything that a rank starts
// inherits its RANK, and so do the helpers that a launcher script runs before the rank itself.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// Whether this process was the rank that its environment named: it is not below a rank, nobody
/// else is this rank, and it ran what the other ranks run. True for all that called collectives.
bool was_its_rank(const sources::Recording& recording, const std::vector<Process>& processes,
                  const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
