// SPDX-License-Identifier: Apache-2.0
// A step that one rank skipped before it continued: by a `continue` on its own data, or because an
// exception was caught. Its next calls are matched with those of the previous step.
#pragma once

#include <optional>

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// What may have let `ours` continue without the call in which `theirs` waits: an except clause
/// around it that continues, or a `continue` before it that depends on the iteration's data. Both
/// are in one loop, or ours is after the try.
std::optional<Branch> skipped_step(const model::JobModel& job, const Fork& fork);

/// The same if ours is in a later iteration of a loop around the fork: it has come past that call.
std::optional<Branch> skipped_by_one_ahead(const model::JobModel& job, const Fork& fork);

/// The same if ours has left `loop`, which has the same number of iterations on all ranks.
std::optional<Branch> skipped_in(const model::JobModel& job, const Fork& fork,
                                 const LeftLoop& loop);

/// The line is in a try of a loop that only an exception repeats: an exception does not skip what
/// the line calls, it makes the rank call that again.
bool only_retries(const model::JobModel& job, const model::CallSite& site);

/// According to the reducers, `one` began fewer backward passes than `other`; nullopt if they do
/// not show it.
std::optional<bool> began_fewer_backwards(const model::JobModel& job, model::Rank one,
                                          model::Rank other);
/// The same for the odd side and the rest.
std::optional<bool> began_fewer_backwards(const model::JobModel& job, const Parting& parting);

/// The branch tests by a helper's result whether something failed, and a step was skipped because
/// of it: sets the clause that caught the failure as the branch.
bool read_caught_step(const graph::Examination& examination, Explanation& explanation);

/// Sets branch and cause if a step was skipped.
bool read_skipped_step(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
