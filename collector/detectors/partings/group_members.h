// SPDX-License-Identifier: Apache-2.0
// Which ranks a group waits for.
#pragma once

#include <string>

#include "collector/graph/examination.h"
#include "collector/model/rank_set.h"

namespace ddpdoctor::detectors {

/// The ranks of a group; all ranks if nothing is known about it, or if it is the default group
/// and every rank has a stack.
model::RankSet members(const graph::Examination& examination, const graph::GroupView& view);

/// The members of the group are unknown, and only one rank was seen in it: unknown which ranks it
/// waits for.
bool has_one_known_member(const graph::Examination& examination, const std::string& group);

}  // namespace ddpdoctor::detectors
