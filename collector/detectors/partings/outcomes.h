// SPDX-License-Identifier: Apache-2.0
// What the deciding line of a divergence resulted in on each rank, where its memory no longer shows
// it: the side that reached the guarded line left the decision on the way that leads there, the
// other side on the other way.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// One decision, and the side that reached the line to which it leads.
struct Led {
  model::CallSite decision;
  std::string condition;
  int reached = 0;  // in the file of the decision
  const model::RankSet* there = nullptr;
  const model::RankSet* others = nullptr;
};

/// Adds the outcomes of a test to its location in the finding.
void add_outcomes_of(const model::JobModel& job, const Led& led, Finding& finding);

/// The same for the branch or the loop of an explanation. A finding that is only possible, or that
/// names several conditions, shows none.
void add_outcomes(const model::JobModel& job, const Explanation& explanation, Finding& finding);

}  // namespace ddpdoctor::detectors
