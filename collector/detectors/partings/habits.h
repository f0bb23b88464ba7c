// SPDX-License-Identifier: Apache-2.0
// What ranks did before they diverged, for a divergence that neither numbers nor the source decide:
// which side continues as before, and which does something new.
#pragma once

#include <cstddef>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// The number of earlier calls or rounds that excludes chance.
inline constexpr std::size_t kHabit = 2;

/// The side of a divergence that calls from a line from which no rank called before.
enum class Newcomer { kNeither, kOdd, kRest };

/// kNeither if both sides call from such a line, or neither does; if some rank never made the other
/// side's call before; or if the records do not start at the first call.
Newcomer newcomer(const graph::Examination& examination, const Parting& parting);

/// The same for two calls of one line that makes calls of several kinds through a library, both of
/// which came before: the new one is of a kind that never followed calls like the last ones.
Newcomer newcomer_in_one_line(const graph::Examination& examination,
                              const model::CollectiveCall& odd, const model::CollectiveCall& rest);

/// The side whose call never followed calls like the last ones, while calls like the other side's
/// always did; kNeither if the last calls are new, too, or were followed by both.
Newcomer newcomer_by_rhythm(const graph::Examination& examination, const Parting& parting);

/// The newcomer of two equal sides, by their calls, else by the rhythm; kNeither if they are
/// unequal.
Newcomer newcomer_of_tie(const graph::Examination& examination, const Parting& parting);

/// By the rhythm, the odd side left a call out: it is in the call that came after the other side's
/// in earlier steps.
bool left_out_by_rhythm(const graph::Examination& examination, const Parting& parting);

/// Where the recorded calls of a group end to be the same ones: also at two types of one operation,
/// if one of them is new at this place of its line. nullptr if they never do.
const graph::Divergence* first_difference(const graph::Examination& examination,
                                          const graph::GroupView& view);

/// The group has made other calls before, but never one like this.
bool is_first_of_its_kind(const graph::Examination& examination, const model::CollectiveCall& call);

/// All ranks of both sides have met before in a call of the group that the waiting side made from
/// the same line: such a call is not extra, however each rank decides when to make it.
bool met_here_before(const graph::Examination& examination, const Parting& parting);

/// This line calls this operation only here, and a different one everywhere else.
bool breaks_its_habit(const graph::Examination& examination, const Side& side);

}  // namespace ddpdoctor::detectors
