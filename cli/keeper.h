// SPDX-License-Identifier: Apache-2.0
// Programs beside the job that are not part of it: a collector, a NATS server. A small process
// starts them; when the job begins it is not our child, and it ends the programs after us, however
// we end.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ddpdoctor::cli {

class Keeper {
 public:
  /// Call before the job is launched and while this process has one thread.
  static base::Result<Keeper> start();

  /// Starts a program with its output on our stderr. Programs started later are ended first.
  /// `patient`: it ends by itself after the job and gets time for it.
  void run(const std::vector<std::string>& command, bool patient);
  /// This program has finished: waits some seconds at most until the kept programs have ended, too.
  void finish();
  [[nodiscard]] pid_t pid() const {
    return pid_;
  }

 private:
  Keeper(pid_t pid, base::UniqueFd orders, base::UniqueFd end)
      : pid_(pid), orders_(std::move(orders)), end_(std::move(end)) {}

  pid_t pid_;

  base::UniqueFd orders_;  // orders to the keeper
  base::UniqueFd end_;     // closed when the keeper has ended
};

}  // namespace ddpdoctor::cli
