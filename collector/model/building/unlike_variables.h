// SPDX-License-Identifier: Apache-2.0
// Environment variables with different values on the ranks of one machine: a program that reads one
// of them may behave differently. Only names are recorded, not values.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::model {

/// One fact "variable-unlike" per variable, with its `name`, the `sides` (ranks with equal values,
/// as ranges) and the ranks on which it is `unset`. `processes` are those of the tree, in its
/// order. Omits variables that describe the job (RANK, MASTER_*, …), whose values are compared
/// elsewhere.
std::vector<Fact> unlike_variables(const sources::JobTree& tree,
                                   const std::vector<Process>& processes);

}  // namespace ddpdoctor::model
