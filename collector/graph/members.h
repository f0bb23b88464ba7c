// SPDX-License-Identifier: Apache-2.0
// Who is in a process group.
#pragma once

#include <vector>

#include "collector/graph/divergence.h"
#include "collector/graph/standing.h"

namespace ddpdoctor::graph {

/// The ranks of a group; where nobody said them, as in gloo's dumps, those that were seen in it:
/// nobody else may be waited for. Empty when nothing was recorded: then it may be anybody.
model::RankSet members_of(const GroupView& view, const std::vector<Standing>& standings);

}  // namespace ddpdoctor::graph
