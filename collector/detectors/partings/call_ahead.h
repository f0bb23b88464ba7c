// SPDX-License-Identifier: Apache-2.0
// A few ranks wait in a call that most have not reached: whether it is a common call that those few
// only reached first.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Every rank of the rest has made a call from the line of the odd ones, through any callers.
bool all_called_before(const graph::Examination& examination, const Parting& parting);

/// The odd ranks are the majority and sleep at a line before the call, which is still ahead of
/// them.
bool sleep_before_it(const Parting& parting);

/// The rest have reached the odd ranks' call through the same lines before, or they are before it
/// in the source and no condition leads there.
bool is_call_of_all(const graph::Examination& examination, const Explanation& explanation);

}  // namespace ddpdoctor::detectors
