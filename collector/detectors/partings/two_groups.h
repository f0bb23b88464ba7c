// SPDX-License-Identifier: Apache-2.0
// Two operations are a mismatch only in one group. Stacks often do not name the group, and
// frameworks have many.
#pragma once

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// Native frames show two backends, which are never one group.
bool on_two_backends(const graph::Examination& examination, model::Rank one, model::Rank other);

/// Nothing shows that both sides are in one group: a framework makes the calls, no frame is the
/// user's, and neither a record nor an argument names the group. A host that runs ahead of its
/// device is in another call than its peers, and nothing is wrong with that.
bool groups_are_guessed(const graph::Examination& examination, const Parting& parting);

/// Both sides are in one operation at two lines, and neither stacks nor records tell their groups:
/// calls of one group would have met each other.
bool would_have_met(const graph::Examination& examination, const Parting& parting);

}  // namespace ddpdoctor::detectors
