// SPDX-License-Identifier: Apache-2.0
// Variables of the environment that the ranks of one machine were given differently: a program that
// asks for one of them goes different ways. Values stay where they are; only names leave.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::model {

/// One fact "variable-unlike" for each, with its `name`, the `sides` (ranks of one value, as
/// ranges) and the ranks on which it is `unset`. `processes` are those of the tree, in its order.
/// Variables that describe the job (RANK, MASTER_*, …) are left out: they are compared by value
/// elsewhere.
std::vector<Fact> unlike_variables(const sources::JobTree& tree,
                                   const std::vector<Process>& processes);

}  // namespace ddpdoctor::model
