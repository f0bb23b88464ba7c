// SPDX-License-Identifier: Apache-2.0
// The function of a library in which the culprit is, below its line of the user's code: what that
// line called, which may wait for something of its own.
#pragma once

#include <vector>

#include "collector/diagnosis/explain_away.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::diagnosis {

/// Adds, for the first line of a finding, the innermost line of a library, if all threads at that
/// line are there. torch and the standard library do not count, nor do calls of torch.distributed.
void tell_library_places(std::vector<Judged>& findings, const graph::Examination& examination);

}  // namespace ddpdoctor::diagnosis
