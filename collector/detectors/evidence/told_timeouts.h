// SPDX-License-Identifier: Apache-2.0
// Ranks that torch's own NCCL watchdog ended, where no message identifies the call: they waited,
// and their end shows nothing about its cause.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The ranks whose wait a watchdog ended in a call without a number, and what they waited in:
/// "all_reduce", or "a collective" if they waited in several.
struct ToldTimeouts {
  model::RankSet ranks;
  std::string operation;
  double seconds = 0;  // the longest wait
  std::vector<Evidence> evidence;
};
ToldTimeouts told_timeouts(const model::JobModel& job);

/// What is known if nothing else is: who waited, and whose watchdog was stuck.
Findings ended_by_watchdogs(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
