// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/circumstances.h"

#include "collector/detectors/partings/framework_place.h"
#include "collector/detectors/partings/recomputation.h"

namespace ddpdoctor::detectors {

void add_circumstances(const Explanation& explanation, Finding& finding) {
  add_user_line(explanation, finding);
  add_repeated_forward(explanation.parting.odd, finding);
}

}  // namespace ddpdoctor::detectors
