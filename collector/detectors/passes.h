// SPDX-License-Identifier: Apache-2.0
// How each side of a parting came from the last call that both made together to the one at which
// they part: further on in the same pass of a loop, or round it once more. A rank in the first step
// of the next epoch waits at the same line as one that has a step more in this one.
#pragma once

#include "collector/detectors/parting.h"
#include "collector/detectors/source_path.h"

namespace ddpdoctor::detectors {

/// Who has begun another pass of a loop that both are in, while the other is still in the pass
/// before.
enum class Ahead { kUnknown, kNobody, kOdd, kRest };

/// The answer, and of those behind: they went round a loop of their own again, in which both made
/// calls before.
struct Passes {
  Ahead ahead = Ahead::kUnknown;
  bool behind_repeats = false;

  [[nodiscard]] bool differ() const {
    return ahead == Ahead::kOdd || ahead == Ahead::kRest;
  }
};

/// By the lines that recorded calls come from; kUnknown without records.
Passes passes_of(const graph::Examination& examination, const Parting& parting, const Fork& fork);

/// The rest waits in a further call of a step (a bucket of the same backward) of which the odd
/// ranks made the calls before.
bool waits_within_a_step(const graph::Examination& examination, const Parting& parting);

/// Their last call together came from behind this loop, which both had been in, and whoever is out
/// of it has gone on from there: both made equally many rounds, and who is in it began it anew.
bool both_had_left(const graph::Examination& examination, const Parting& parting, const Fork& fork,
                   const LeftLoop& loop);

}  // namespace ddpdoctor::detectors
