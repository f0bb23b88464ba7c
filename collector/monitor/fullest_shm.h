// SPDX-License-Identifier: Apache-2.0
// How full /dev/shm has ever been beside a job: whoever dies of a full one frees it by dying, so
// that nobody finds it full afterwards.
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
  /// The look with the least room, as a "shm-usage" fact with `peak`; none before the first look.
  [[nodiscard]] std::optional<model::Fact> fact() const;

 private:
  std::string folder_;
  std::int64_t total_ = 0;
  std::int64_t free_ = 0;
};

/// Adds the fact to a job in which a process died of SIGBUS.
void add_fullest_shm(const FullestShm& shm, model::JobModel& job);

}  // namespace ddpdoctor::monitor
