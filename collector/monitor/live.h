// SPDX-License-Identifier: Apache-2.0
// Looks at a running job again and again for `ddpdoctor watch`: by its rings when it was started by
// `run`, by attach otherwise.
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
  /// A job by any pid of it; its spool is found when it was started by `run`.
  static base::Result<LiveSource> of_pid(pid_t pid);
  /// A job by the spool folder of its `run`.
  static base::Result<LiveSource> of_spool(const std::string& folder);
  /// The only job on this machine that was started by `run`.
  static base::Result<LiveSource> only_one();

  /// How the job stands now. `ended` is set when no process of it is left.
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
