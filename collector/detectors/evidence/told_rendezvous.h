// SPDX-License-Identifier: Apache-2.0
// What the messages of the rendezvous in logs say: how many ranks were expected, how many joined.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Findings of rendezvous-incomplete from logs. A rank that timed out was present; members of the
/// world without such a message were not, unless more had joined than wrote it.
Findings rendezvous_told_by_logs(const graph::Examination& examination);

/// More ranks joined than the world has: processes of several jobs, or of several launches, have
/// the same numbers. A finding of duplicate-rank.
std::optional<Finding> too_many_joined(const graph::Examination& examination);

/// More ranks joined than the world has, and one of them has a number that the world does not have:
/// a finding of environment-differs.
std::optional<Finding> rank_outside_world(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
