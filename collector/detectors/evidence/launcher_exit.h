// SPDX-License-Identifier: Apache-2.0
// exit-hang of who started the ranks: all of them have ended well, and a process above them joins a
// thread or a child that does not end, or reads a pipe that a process which they left holds open.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Every rank has ended, with status 0 or while its work was done.
bool all_ranks_are_done(const graph::Examination& examination);

/// A finding for each; `still` is what the standstill allows to say.
Findings launchers_that_stay(const graph::Examination& examination, Confidence still);

/// The same where no rank was ever seen: `attach` came when they were gone, or they were never
/// started. No more than possible.
Findings programs_that_stay(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
