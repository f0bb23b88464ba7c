// SPDX-License-Identifier: Apache-2.0
// The members of a process group.
#pragma once

#include <vector>

#include "collector/graph/divergence.h"
#include "collector/graph/standing.h"

namespace ddpdoctor::graph {

/// The ranks of a group. If no evidence lists them, as in gloo's dumps, the ranks seen in it: then
/// no other rank may count as awaited. Empty if nothing was recorded: any rank may be a member.
model::RankSet members_of(const GroupView& view, const std::vector<Standing>& standings);

}  // namespace ddpdoctor::graph
