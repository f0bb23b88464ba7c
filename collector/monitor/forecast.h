// SPDX-License-Identifier: Apache-2.0
// A job that trains, glanced at from time to time: whether its loops have the same length on all
// ranks is known long before the shorter ones end. Nobody is stopped for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::monitor {

/// Decides when to glance, and does it.
class Forecast {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Forecast(pid_t job) : job_(job) {}

  /// The job in the midst of its loops, when it is time for a glance and it has some whose length
  /// is known. `collectives`: begun since the start.
  std::optional<model::JobModel> look(std::uint64_t collectives, Clock::time_point now);
  /// Whether it is time for one; counts it as done.
  bool is_due(std::uint64_t collectives, Clock::time_point now);
  /// It was said; no more glances.
  void stop() {
    over_ = true;
  }

 private:
  pid_t job_;
  std::uint64_t seen_ = 0;
  std::optional<Clock::time_point> next_;
  std::chrono::duration<double> distance_{};
  bool over_ = false;
  std::vector<model::Fact> before_;  // of the glance before
};

}  // namespace ddpdoctor::monitor
