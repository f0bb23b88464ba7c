// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/ran_on.h"

namespace ddpdoctor::detectors {

bool ran_on(const graph::Examination& examination, const Side& side) {
  if (side.call == nullptr || side.path.empty()) {
    return false;
  }
  const graph::Calls& calls = examination.history.calls(side.call->group, side.call->rank);
  return !calls.empty() && calls.back()->sequence > side.call->sequence;
}

}  // namespace ddpdoctor::detectors
