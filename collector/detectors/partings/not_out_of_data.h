// SPDX-License-Identifier: Apache-2.0
// Ranks are out of a loop that others wait in, and the loop did not run out of data: they left it
// by an exception, or they never came to it.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// DistributedSampler gives every rank as many samples, and the ranks in the loop have batches to
/// come.
bool has_equal_batches(const model::JobModel& job, const Side& in, const LeftLoop& loop);

/// Sets branch and cause where the try around the loop catches an exception of the program's own
/// that a test raises, or where all ranks have equally many batches and the try goes on after a
/// failure. The odd ranks must be those out of the loop.
bool read_exception_out(const graph::Examination& examination, Explanation& explanation);

/// A container of one length on all ranks, gone over to its end by the odd ones: they left out a
/// call in some round. Sets branch and cause where the round shows what can have skipped it.
bool read_equal_rounds(const graph::Examination& examination, Explanation& explanation);

/// The loop lies in a function that the records know of those in it only, and of those by no call
/// but the one in which they wait: the others have not left it.
bool was_never_entered(const graph::Examination& examination, const Explanation& explanation);

}  // namespace ddpdoctor::detectors
