// SPDX-License-Identifier: Apache-2.0
// A cause of a hang and the pure function that recognises it. One file each; the catalog is generated from the folder.
#pragma once

#include <span>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// No clock, no file, no environment, no log, no state: the same examination gives the same findings for ever.
struct Detector {
  std::string_view kind;         // "missing-rank": file name, SARIF rule, JUnit case
  std::string_view title;        // "A rank never joined a collective"
  std::string_view explanation;  // what `ddpdoctor explain` prints: what you see, why, how it is recognised, the fix as a small diff
  Findings (*detect)(const graph::Examination& examination);
};

/// Every detector of this folder, by kind. Generated: dropping a file here is enough.
std::span<const Detector* const> catalog();

const Detector* find(std::string_view kind);

}  // namespace ddpdoctor::detectors
