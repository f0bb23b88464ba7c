// SPDX-License-Identifier: Apache-2.0
// How each side of a divergence got from the last common call to the next one: further on in the
// same iteration of a loop, or in another one. A rank in the first step of the next epoch waits at
// the same line as one with an extra step in this epoch.
#pragma once

#include "collector/detectors/partings/parting.h"
#include "collector/detectors/partings/turns.h"
#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// The result; for the side behind, also whether it repeated a loop of its own in which both made
/// calls before.
struct Passes {
  Ahead ahead = Ahead::kUnknown;
  bool behind_repeats = false;

  [[nodiscard]] bool differ() const {
    return ahead == Ahead::kOdd || ahead == Ahead::kRest;
  }
};

/// From the counts of the loops' iterators, else from the lines of recorded calls; kUnknown without
/// either.
Passes passes_of(const graph::Examination& examination, const Parting& parting, const Fork& fork);

/// The side that has not reached the position of the other.
enum class Behind { kUnknown, kOdd, kRest };

/// A condition separates them only if it leads to the call of the side behind: the other side has
/// been there already and skipped it.
struct Order {
  Behind behind = Behind::kUnknown;
  bool loose = false;      // same as Turns::loose
  bool same_turn = false;  // of all loops around both
};

/// From the loops' iterators, and from the lines of ranks in the same iteration; kUnknown if the
/// records contradict a loose count.
Order order_of(const graph::Examination& examination, const Parting& parting, const Fork& fork);

/// In the form for branch queries between two paths, with odd as `ours`.
std::optional<bool> ours_behind(const Order& order);

/// The rest waits in a later call of a step (a bucket of the same backward) of which the odd ranks
/// made the earlier calls.
bool waits_within_a_step(const graph::Examination& examination, const Parting& parting);

/// Their last common call was from after this loop, which both had left, and the side outside has
/// continued from there: both made the same number of iterations, and the side inside began the
/// loop again.
bool both_had_left(const graph::Examination& examination, const Parting& parting, const Fork& fork,
                   const LeftLoop& loop);

}  // namespace ddpdoctor::detectors
