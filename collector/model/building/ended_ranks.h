// SPDX-License-Identifier: Apache-2.0
// Which of the processes known only by their exit were ranks: everything that a rank starts
// inherits its RANK, and so do helpers that a launcher script runs before the rank itself.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// True if this process was the rank that its environment names: it is not below a rank, no other
/// process is this rank, and it ran the same program as the other ranks. True for every process
/// that called collectives.
bool was_its_rank(const sources::Recording& recording, const std::vector<Process>& processes,
                  const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
