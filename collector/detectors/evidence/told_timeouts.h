// SPDX-License-Identifier: Apache-2.0
// Ranks that torch's own NCCL watchdog ended, where no message identifies the call: they waited,
// and their end shows nothing about its cause.
#pragma once

#include <string_view>

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

/// The logs have no line of this rank, and the watchdog of another one ended a wait there: if this
/// one aborted, its own watchdog may have ended it.
bool may_have_timed_out(const model::JobModel& job, model::Rank rank);

/// Logs report such ends (`kind`) only below the line in which torch's watchdog gives up: it ended
/// the processes itself.
bool told_after_timeouts(const model::JobModel& job, std::string_view kind);

/// What is known if nothing else is: who waited, and whose watchdog was stuck.
Findings ended_by_watchdogs(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
