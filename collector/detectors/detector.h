// SPDX-License-Identifier: Apache-2.0
// A cause of a hang and the pure function that recognises it. One file each; the catalog is
// generated from the folder.
#pragma once

#include <span>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// What a cause does to the job: it decides the verdict, and which findings a moving job may have.
enum class Effect { kHang, kCrash, kLeak, kSlow, kWrongNumbers };

/// Rungs of Detector::specificity: a finer cause explains a coarser one on the same ranks.
constexpr int kSaysNothing = 0;    // it cannot be decided
constexpr int kPlainFact = 10;     // what is seen, not why: a rank is missing, late, gone
constexpr int kCause = 20;         // a call, a branch or a place that explains the plain fact
constexpr int kPlaceOfCause = 30;  // the process, lock or file in which the waiting ends
constexpr int kMechanism = 40;     // why that place never lets go: a deadlock, an inherited lock

/// No clock, no file, no environment, no log, no state: the same examination gives the same
/// findings for ever.
struct Detector {
  std::string_view kind;         // "missing-rank": file name, SARIF rule, JUnit case
  std::string_view title;        // "A rank never joined a collective"
  std::string_view explanation;  // what `ddpdoctor explain` prints: what you see, why, how it is
                                 // recognised, the fix as a small diff
  Findings (*detect)(const graph::Examination& examination);
  int specificity = kCause;  // with culprits and evidence: which of two findings explains the other
  Effect effect = Effect::kHang;
};

/// Every detector of this folder, by kind. Generated: dropping a file here is enough.
std::span<const Detector* const> catalog();

const Detector* find(std::string_view kind);

}  // namespace ddpdoctor::detectors
