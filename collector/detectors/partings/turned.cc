// SPDX-License-Identifier: Apache-2.0
// An explanation with odd and rest exchanged.
#include <utility>

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

void Explanation::turn() {
  parting.turn();
  if (fork) {
    std::swap(fork->ours, fork->theirs);
    std::swap(fork->below_ours, fork->below_theirs);
  }
  if (branch) {
    branch->leads_to_ours = !branch->leads_to_ours;
  }
  if (loop) {
    loop->ours_left = !loop->ours_left;
  }
}

}  // namespace ddpdoctor::detectors
