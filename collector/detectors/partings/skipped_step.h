// SPDX-License-Identifier: Apache-2.0
// A step that one rank left out and went on after: by a `continue` on its own data, or because an
// exception was caught. Its next calls pair with those of a step before.
#pragma once

#include <optional>

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// What can have let `ours` go on without the call in which `theirs` wait: an except clause around
/// it that goes on, or a `continue` before it on what the round reads. Both are in one loop, or
/// ours is behind the try.
std::optional<Branch> skipped_step(const model::JobModel& job, const Fork& fork);

/// The same where ours has left `loop`, which goes round equally often on all ranks.
std::optional<Branch> skipped_in(const model::JobModel& job, const Fork& fork,
                                 const LeftLoop& loop);

/// As the reducers say, the odd side began fewer backwards than the rest; nullopt when they say
/// nothing.
std::optional<bool> began_fewer_backwards(const model::JobModel& job, const Parting& parting);

/// The branch asks by a helper's answer whether something failed, and a step was left out behind
/// it: sets the clause that caught the failure as the branch.
bool read_caught_step(const graph::Examination& examination, Explanation& explanation);

/// Sets branch and cause where a step was left out.
bool read_skipped_step(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
