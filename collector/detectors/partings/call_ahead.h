// SPDX-License-Identifier: Apache-2.0
// A few ranks wait in a call that most have not come to: whether it is a call of everybody, which
// those few only reached first.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Every rank of the rest has made a call from the line of the odd ones, on whatever way.
bool all_called_before(const graph::Examination& examination, const Parting& parting);

/// The odd ones are most and sleep at a line before the call: it is still ahead of them.
bool sleep_before_it(const Parting& parting);

/// The rest have come to the odd ranks' call on the same way before, or they stand ahead of it in
/// the source and no condition leads there.
bool is_call_of_all(const graph::Examination& examination, const Explanation& explanation);

}  // namespace ddpdoctor::detectors
