// SPDX-License-Identifier: Apache-2.0
// Which finding explains which: decided by culprits, by who waits for whom and by how fine and how
// sure each is.
#pragma once

#include <vector>

#include "collector/detectors/detector.h"
#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::diagnosis {

/// A finding and the detector that made it.
struct Judged {
  detectors::Finding finding;
  const detectors::Detector* detector = nullptr;
};

/// True when `cause` makes `effect` needless: it is finer or surer, and whoever the other accuses
/// is its culprit or is held up by it.
bool explains(const Judged& cause, const Judged& effect, const graph::Examination& examination);

/// What remains when every finding that another one explains is dropped.
std::vector<Judged> without_explained(std::vector<Judged> all,
                                      const graph::Examination& examination);

/// Sorts by what to act on first: sure before unsure, where the waiting ends, finer, then by name
/// so that the order is stable.
void put_in_order(std::vector<Judged>& all, const graph::Examination& examination);

}  // namespace ddpdoctor::diagnosis
