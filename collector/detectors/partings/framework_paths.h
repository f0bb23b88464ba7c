// SPDX-License-Identifier: Apache-2.0
// The ways of the ranks through the sources of frameworks, as far as these are known.
#pragma once

#include <optional>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// The sources of the user and of the frameworks together, in which a value is followed from one to
/// the other; nothing else of the job.
const model::JobModel& with_frameworks(const graph::Examination& examination);

/// The frames of the user and of frameworks, innermost first: those of its stack, or of its call.
Path whole_path(const model::JobModel& job, const Side& side);

/// Whether `in` is in a loop, of a framework or of the user's, that `out` is not in any more;
/// nullopt if the sources do not show it.
std::optional<bool> is_in_another_loop(const graph::Examination& examination, const Side& in,
                                       const Side& out);

/// A framework's function led `in` into a loop, and `out` to a later line that is not in it.
bool is_behind_loop_of_framework(const graph::Examination& examination, const Side& in,
                                 const Side& out);

}  // namespace ddpdoctor::detectors
