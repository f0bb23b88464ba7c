// SPDX-License-Identifier: Apache-2.0
// exit-hang of the process that started the ranks: all ranks have exited successfully, and a
// process above them joins a thread or child that does not end, or reads a pipe that a process left
// behind holds open.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Every rank has exited with status 0, or has finished its work.
bool all_ranks_are_done(const graph::Examination& examination);

/// One finding each; `still` is the confidence that the hang allows.
Findings launchers_that_stay(const graph::Examination& examination, Confidence still);

/// The same if no rank was ever seen: they had exited before `attach`, or never started. At most
/// possible.
Findings programs_that_stay(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
