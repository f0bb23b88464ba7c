// SPDX-License-Identifier: Apache-2.0
// Messages of torch about a whole rank instead of one call: its own report on a desync, and a
// watchdog that was itself stuck.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Reads TORCH_NCCL_DESYNC_DEBUG's "Snapshot of ranks' latest states" line by line. Its lines have
/// no rank prefix; its numbers count from 1 and differ from the watchdog's.
class DesyncReport {
 public:
  void read(std::string_view line, std::optional<model::Rank> whose);

  /// Each rank's newest call in the newest report, and the call that the slowest rank did not join;
  /// empty if there was no report.
  [[nodiscard]] std::vector<model::CollectiveCall> calls() const;
  /// The rank that wrote it: the report is about the group whose call timed out there.
  [[nodiscard]] std::optional<model::Rank> author() const {
    return author_;
  }

 private:
  std::map<model::Rank, model::CollectiveCall> newest_;
  std::optional<model::Rank> author_;
  std::optional<model::CollectiveCall> heading_;  // "#315 started ranks:"
};

/// "[PG 0 Rank 2] … watchdog got stuck for 480 seconds": a fact watchdog-stuck of this rank, once.
void read_stuck_watchdog(std::string_view line, std::optional<model::Rank> whose,
                         model::JobModel& job);

/// "WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1807403 milliseconds" of torch before
/// 1.13, which does not number the call: a fact watchdog-timeout of this rank, once.
void read_unnumbered_timeout(std::string_view line, std::optional<model::Rank> whose,
                             model::JobModel& job);

/// "[Rank 11] NCCL watchdog thread terminated with exception: NCCL error: …": a fact watchdog-error
/// of this rank, once.
void read_watchdog_error(std::string_view line, std::optional<model::Rank> whose,
                         model::JobModel& job);

}  // namespace ddpdoctor::imports
