// SPDX-License-Identifier: Apache-2.0
// Which of two sides is further, according to the iterators of the loops around both: in a later
// iteration, or at a later line of the same iteration. A condition can separate them only if it
// leads to the call of the side behind: the other side has been there already and skipped it.
#pragma once

#include "collector/detectors/partings/parting.h"
#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// The side that has begun another iteration of a common loop while the other is still in the
/// previous one.
enum class Ahead { kUnknown, kNeither, kOdd, kRest };

struct Turns {
  Ahead ahead = Ahead::kUnknown;
  bool loose = false;  // counts items that were read, some of which may have caused no iteration
};

/// kUnknown unless each loop around both is counted.
Turns turns_of(const model::JobModel& job, const Parting& parting, const Fork& fork);

/// Both are in a loop that this condition leaves for good, and nothing leads back into it: so its
/// result was equal on both.
bool would_have_left(const model::JobModel& job, const Parting& parting, const Fork& fork,
                     const Branch& branch);

}  // namespace ddpdoctor::detectors
