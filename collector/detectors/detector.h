// SPDX-License-Identifier: Apache-2.0
// A cause of a hang and the pure function that recognizes it. One file each; the catalog is
// generated from the folder.
#pragma once

#include <span>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The effect of a cause on the job: decides the verdict, and which findings a running job may
/// have.
enum class Effect { kHang, kCrash, kLeak, kSlow, kWrongNumbers };

/// Levels of Detector::specificity: a more specific cause explains a less specific one on the same
/// ranks.
constexpr int kSaysNothing = 0;    // it cannot be decided
constexpr int kPlainFact = 10;     // what happened, not why: a rank is missing, late or dead
constexpr int kCause = 20;         // a call, a branch or a line that explains the plain fact
constexpr int kPlaceOfCause = 30;  // the process, lock or file at the end of the wait chain
constexpr int kMechanism = 40;     // why it never continues: a deadlock, an inherited lock

/// Uses no clock, file, environment, log or state: the same examination always gives the same
/// findings.
struct Detector {
  std::string_view kind;   // "missing-rank": file name, SARIF rule, JUnit case
  std::string_view title;  // "A rank never joined a collective"
  // Text of `ddpdoctor explain`: symptoms, cause, how it is recognized, the fix as a small diff.
  std::string_view explanation;
  Findings (*detect)(const graph::Examination& examination);
  // Together with culprits and evidence: which of two findings explains the other.
  int specificity = kCause;
  Effect effect = Effect::kHang;
};

/// Every detector of this folder, by kind. Generated: a new file there is enough.
std::span<const Detector* const> catalog();

const Detector* find(std::string_view kind);

}  // namespace ddpdoctor::detectors
