// SPDX-License-Identifier: Apache-2.0
// What the deciding line of a divergence resulted in on each rank, where its memory no longer shows
// it: the side that reached the guarded line left the decision on the way that leads there, the
// other side on the other way.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"
#include "collector/graph/examination.h"

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

/// The side on which the test was not read went the other way than the side on which it was.
void add_opposite_outcome(const model::JobModel& job, const model::CallSite& decision,
                          const std::string& condition, const Parting& parting, Finding& finding);

/// The same for the branch, the loop or the dispatch of an explanation. A finding that is only
/// possible, or that names several conditions, shows none.
void add_outcomes(const graph::Examination& examination, const Explanation& explanation,
                  Finding& finding);

/// Of a loop: these ranks have left it, those have not. `why_left` and `why_inside` say how that is
/// known.
struct LoopOutcome {
  model::CallSite loop;
  std::string header;
  const model::RankSet* left = nullptr;
  const model::RankSet* inside = nullptr;
  std::string why_left{};
  std::string why_inside{};
};
void add_loop_outcome(const model::JobModel& job, const LoopOutcome& outcome, Finding& finding);

}  // namespace ddpdoctor::detectors
