// SPDX-License-Identifier: Apache-2.0
// Decides which finding explains another, from the culprits, the wait-for graph, and how specific
// and how certain each finding is.
#pragma once

#include <algorithm>
#include <vector>

#include "collector/detectors/detector.h"
#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::diagnosis {

/// A finding and the detector that made it.
struct Judged {
  detectors::Finding finding;
  const detectors::Detector* detector = nullptr;

  [[nodiscard]] detectors::Effect effect() const {
    return finding.crashed ? detectors::Effect::kCrash : detector->effect;
  }
  [[nodiscard]] int specificity() const {
    return finding.crashed ? std::min(detectors::kPlainFact, detector->specificity)
                           : detector->specificity;
  }
};

/// True when `cause` makes `effect` redundant: it is more specific or more certain, and each rank
/// that `effect` accuses is a culprit of `cause` or waits because of one.
bool explains(const Judged& cause, const Judged& effect, const graph::Examination& examination);

/// Drops every finding that another one explains.
std::vector<Judged> without_explained(std::vector<Judged> all,
                                      const graph::Examination& examination);

/// Sorts by what to act on first: certain before uncertain, then the end of the wait chain, then
/// the more specific finding, then by name for a stable order; of one kind, the one that shows a
/// line.
void put_in_order(std::vector<Judged>& all, const graph::Examination& examination);

}  // namespace ddpdoctor::diagnosis
