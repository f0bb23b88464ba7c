// SPDX-License-Identifier: Apache-2.0
// From a job to what is said of it: every detector asked, explained-away findings dropped, the rest
// in the order to act on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/diagnosis/stack_diff.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::diagnosis {

enum class Verdict { kHang, kCrash, kLeak, kSlow, kRunning, kFinished, kUndetermined };

std::string_view verdict_name(Verdict verdict);

/// Points into the JobModel it was made from, which must outlive it.
struct Diagnosis {
  const model::JobModel& job;
  Verdict verdict = Verdict::kUndetermined;
  detectors::Findings findings;  // the one to act on first
  std::vector<std::string> detectors_run;
  graph::Examination examination;
  StackDiff stack_diff;
};

Diagnosis diagnose(const model::JobModel& job);

/// All ranks and who started them have ended, and a launcher is there that has no ranks yet: a
/// script tries again, and what the first life died of may be over.
bool starts_again(const model::JobModel& job);

}  // namespace ddpdoctor::diagnosis
