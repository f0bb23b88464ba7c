// SPDX-License-Identifier: Apache-2.0
// How each side of a parting came from the last call that both made together to the one at which
// they part: further on in the same pass of a loop, or round it once more. A rank in the first step
// of the next epoch waits at the same line as one that has a step more in this one.
#pragma once

#include "collector/detectors/partings/parting.h"
#include "collector/detectors/partings/turns.h"
#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// The answer, and of those behind: they went round a loop of their own again, in which both made
/// calls before.
struct Passes {
  Ahead ahead = Ahead::kUnknown;
  bool behind_repeats = false;

  [[nodiscard]] bool differ() const {
    return ahead == Ahead::kOdd || ahead == Ahead::kRest;
  }
};

/// By what the loops' iterators count, else by the lines that recorded calls come from; kUnknown
/// without either.
Passes passes_of(const graph::Examination& examination, const Parting& parting, const Fork& fork);

/// Who has not come yet to where the others are.
enum class Behind { kUnknown, kOdd, kRest };

/// A condition parts them only where it leads to the call of those behind: the others have been
/// there already, and passed it by.
struct Order {
  Behind behind = Behind::kUnknown;
  bool loose = false;      // as Turns::loose
  bool same_turn = false;  // of all loops around both
};

/// By the loops' iterators, and by the lines of those who are in the same turn; kUnknown where the
/// records contradict a loose count.
Order order_of(const graph::Examination& examination, const Parting& parting, const Fork& fork);

/// As branches between two paths are asked for, with odd as `ours`.
std::optional<bool> ours_behind(const Order& order);

/// The rest waits in a further call of a step (a bucket of the same backward) of which the odd
/// ranks made the calls before.
bool waits_within_a_step(const graph::Examination& examination, const Parting& parting);

/// Their last call together came from behind this loop, which both had been in, and whoever is out
/// of it has gone on from there: both made equally many rounds, and who is in it began it anew.
bool both_had_left(const graph::Examination& examination, const Parting& parting, const Fork& fork,
                   const LeftLoop& loop);

}  // namespace ddpdoctor::detectors
