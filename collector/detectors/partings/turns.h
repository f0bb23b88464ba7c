// SPDX-License-Identifier: Apache-2.0
// Who of two sides is further on, as the iterators of the loops around both of them count: in a
// later turn of one, or in the same turn at a later line. A condition can part them only where it
// leads to the call of those behind: the others have been there already, and passed it by.
#pragma once

#include "collector/detectors/partings/parting.h"
#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// Who has begun another turn of a loop that both are in, while the other is still in the turn
/// before.
enum class Ahead { kUnknown, kNobody, kOdd, kRest };

struct Turns {
  Ahead ahead = Ahead::kUnknown;
  bool loose = false;  // by items that were read, of which some may have given no turn
};

/// kUnknown unless each loop on the way to both is counted.
Turns turns_of(const model::JobModel& job, const Parting& parting, const Fork& fork);

/// Both are in a loop that this condition leads out of for good, and nothing leads back into it: it
/// came out alike.
bool would_have_left(const model::JobModel& job, const Parting& parting, const Fork& fork,
                     const Branch& branch);

}  // namespace ddpdoctor::detectors
