// SPDX-License-Identifier: Apache-2.0
// Takes occasional snapshots of a training job: unequal loop lengths on the ranks are visible long
// before the shorter loop ends. No thread is stopped for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::monitor {

/// Decides when to take a snapshot, and takes it.
class Forecast {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Forecast(pid_t job) : job_(job) {}

  /// The job with its current loops, if a snapshot is due and some loop has a known length.
  /// `collectives`: number begun since the start.
  std::optional<model::JobModel> look(std::uint64_t collectives, Clock::time_point now);
  /// True if a snapshot is due; counts it as taken.
  bool is_due(std::uint64_t collectives, Clock::time_point now);
  /// The forecast was reported: takes no more snapshots.
  void stop() {
    over_ = true;
  }

 private:
  pid_t job_;
  std::uint64_t seen_ = 0;
  std::optional<Clock::time_point> next_;
  std::chrono::duration<double> distance_{};
  bool over_ = false;
  std::vector<model::Fact> before_;  // of the previous snapshot
};

}  // namespace ddpdoctor::monitor
