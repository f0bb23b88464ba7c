// SPDX-License-Identifier: Apache-2.0
// Two operations are a mismatch only within one group. Stacks often do not show the group, and
// frameworks have many.
#pragma once

#include "collector/detectors/partings/cause.h"
#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// Native frames show two backends, which are never one group.
bool on_two_backends(const graph::Examination& examination, model::Rank one, model::Rank other);

/// No evidence shows that both sides are in one group: a framework makes the calls, there is no
/// user frame, and neither a record nor an argument names the group. A host that runs ahead of its
/// device is in another call than its peers without any error.
bool groups_are_guessed(const graph::Examination& examination, const Parting& parting);

/// Only two ranks of the job are known, and the odd one waits in a group in which no other rank was
/// seen: its peer is the other rank, or a rank that no text names. The function that both ranks are
/// in shows at which two lines they differ.
bool each_waits_for_the_other(const graph::Examination& examination,
                              const Explanation& explanation);

/// One function without known source led one side to the call, and the other one to a later line at
/// which its hosts wait for their devices: a condition there differed, or a loop ended earlier. At
/// an earlier line it may only be late, unless all GPUs are busy.
bool stand_in_one_function(const model::JobModel& job, const Explanation& explanation);

/// Where the peers are unknown, no rank is missing: the two ranks differ, or the cause is unknown.
void doubt_unknown_peers(const graph::Examination& examination, Explanation& explanation);

/// A branch explains only the call to which it leads.
bool explains(const Branch& branch, const Parting& parting);

/// Both sides are in one operation at two lines, and neither stacks nor records show their groups:
/// calls of one group would have matched.
bool would_have_met(const graph::Examination& examination, const Parting& parting);

}  // namespace ddpdoctor::detectors
