// SPDX-License-Identifier: Apache-2.0
// Two tools that dumped one process: one shows its Python frames, the other one its native frames.
#pragma once

#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Makes one process of each such pair; they do not count as two snapshots.
void join_tools(std::vector<model::Process>& processes);

}  // namespace ddpdoctor::imports
