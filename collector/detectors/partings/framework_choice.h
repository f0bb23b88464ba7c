// SPDX-License-Identifier: Apache-2.0
// A framework (a trainer, a metric) tests a condition and leads the ranks to different calls, and
// what it tests was decided by the user's code: a callback that asked for an evaluation.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// How sure the source must be that each rank decides by itself.
enum class Decided { kOwn, kMaybe };

/// Sides that diverge below one line of the user's: looks in the framework's source for the
/// condition, and from there for the user's line that decides its value. kMaybe: the value may also
/// be of unknown origin, if the user's code decides it.
bool read_framework_choice(const graph::Examination& examination, Explanation& explanation,
                           Decided by);

}  // namespace ddpdoctor::detectors
