// SPDX-License-Identifier: Apache-2.0
// Ranks are outside a loop that others wait in, and the loop did not run out of data: they left it
// by an exception, or never entered it.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// DistributedSampler gives every rank the same number of samples, and the ranks in the loop have
/// batches left.
bool has_equal_batches(const model::JobModel& job, const Side& in, const LeftLoop& loop);

/// Sets branch and cause if the try around the loop catches an exception that a test in the program
/// raises, or if all ranks have the same number of batches and the try continues after a failure.
/// The odd ranks must be those outside the loop.
bool read_exception_out(const graph::Examination& examination, Explanation& explanation);

/// The loop at this header goes over the same number of items on every rank of both sides.
bool goes_equally_far(const model::JobModel& job, const Parting& parting,
                      const model::CallSite& loop);

/// Items in the same number on all ranks, fully iterated by the odd ones: they skipped a
/// call in some iteration. Sets branch and cause if the loop body shows what may have skipped it.
bool read_equal_rounds(const graph::Examination& examination, Explanation& explanation);

/// In the records, only the ranks in the loop have calls from its function, and only the one in
/// which they wait: the others have not left the loop.
bool was_never_entered(const graph::Examination& examination, const Explanation& explanation);

}  // namespace ddpdoctor::detectors
