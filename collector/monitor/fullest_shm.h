// SPDX-License-Identifier: Apache-2.0
// The highest usage of /dev/shm during a job: a process that a full /dev/shm kills frees its share,
// so later checks find free space.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::monitor {

class FullestShm {
 public:
  explicit FullestShm(std::string folder = "/dev/shm") : folder_(std::move(folder)) {}
  void look();
  /// The measurement with the least free space, as a "shm-usage" fact with `peak`; nothing before
  /// the first one.
  [[nodiscard]] std::optional<model::Fact> fact() const;

 private:
  std::string folder_;
  std::int64_t total_ = 0;
  std::int64_t free_ = 0;
};

/// Adds the fact to a job in which a process was killed by SIGBUS.
void add_fullest_shm(const FullestShm& shm, model::JobModel& job);

}  // namespace ddpdoctor::monitor
