// SPDX-License-Identifier: Apache-2.0
// Observes a running job repeatedly for `ddpdoctor watch`: from its rings if `run` started it,
// otherwise by attaching.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "collector/graph/live.h"
#include "collector/monitor/spool.h"

namespace ddpdoctor::monitor {

class LiveSource {
 public:
  /// A job by any of its pids; finds its spool if `run` started it.
  static base::Result<LiveSource> of_pid(pid_t pid);
  /// A job by the spool folder of its `run`.
  static base::Result<LiveSource> of_spool(const std::string& folder);
  /// The only job on this machine that `run` started.
  static base::Result<LiveSource> only_one();

  /// The current state of the job. `ended` is set if it has no process left.
  base::Result<graph::LiveView> look();

 private:
  LiveSource(pid_t pid, std::uint64_t start_ticks, std::string spool);
  [[nodiscard]] base::Result<model::JobModel> read(int samples);
  void count(graph::LiveView& view);
  void judge(graph::LiveView& view);

  pid_t pid_ = 0;  // 0 = only rings are left
  std::uint64_t start_ticks_ = 0;
  std::string spool_;  // empty = none
  std::optional<PulseWatch> pulse_;
  std::optional<std::uint64_t> calls_;
  std::chrono::steady_clock::time_point counted_at_;
  std::chrono::steady_clock::time_point quiet_since_;
  std::chrono::steady_clock::time_point judged_at_;
  std::optional<graph::LiveVerdict> verdict_;
};

}  // namespace ddpdoctor::monitor
