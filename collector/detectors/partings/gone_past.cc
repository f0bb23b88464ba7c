// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/gone_past.h"

#include "collector/detectors/partings/passes.h"
#include "collector/detectors/partings/shared_path.h"
#include "collector/detectors/partings/skipped_step.h"

namespace ddpdoctor::detectors {

bool went_past(const graph::Examination& examination, const Parting& parting) {
  if (parting.odd.activity() != graph::Activity::kPointToPoint || parting.rest.ranks.empty()) {
    return false;
  }
  const auto fork = fork_between(examination, parting);
  return fork && order_of(examination, parting, *fork).behind == Behind::kRest;
}

void read_gone_past(const graph::Examination& examination, Explanation& explanation) {
  explanation.gone_past = true;
  if (explanation.cause == Cause::kMissing && explanation.fork) {
    explanation.branch = skipped_by_one_ahead(examination.job, *explanation.fork);
    explanation.cause = explanation.branch ? Cause::kDivergent : explanation.cause;
  }
}

}  // namespace ddpdoctor::detectors
