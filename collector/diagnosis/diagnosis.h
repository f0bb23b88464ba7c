// SPDX-License-Identifier: Apache-2.0
// Turns a job into a diagnosis: runs every detector, drops findings that another finding explains,
// and sorts the rest by what to act on first.
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

/// Points into the JobModel that it was made from; the model must outlive it.
struct Diagnosis {
  const model::JobModel& job;
  Verdict verdict = Verdict::kUndetermined;
  detectors::Findings findings;  // the one to act on first
  std::vector<std::string> detectors_run;
  graph::Examination examination;
  StackDiff stack_diff;
};

Diagnosis diagnose(const model::JobModel& job);

/// All ranks and their launcher have ended, and another launcher without ranks is running: a script
/// restarts the job, so the cause of the first failure may be over.
bool starts_again(const model::JobModel& job);

}  // namespace ddpdoctor::diagnosis
