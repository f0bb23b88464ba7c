// SPDX-License-Identifier: Apache-2.0
// Programs that run beside the job and are none of it: a collector, a NATS server. A small process
// of its own starts them, is no child of ours when the job begins, and ends them after us, whatever
// becomes of us.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ddpdoctor::cli {

class Keeper {
 public:
  /// To be called while we have one thread, and before the job is launched.
  static base::Result<Keeper> start();

  /// Starts a program; its output goes to our stderr. Those that are started later are ended first.
  /// `patient`: it ends by itself when the job has, and is given time for it.
  void run(const std::vector<std::string>& command, bool patient);
  /// We have ended: waits until its programs have, too, but not longer than some seconds.
  void finish();
  [[nodiscard]] pid_t pid() const {
    return pid_;
  }

 private:
  Keeper(pid_t pid, base::UniqueFd orders, base::UniqueFd end)
      : pid_(pid), orders_(std::move(orders)), end_(std::move(end)) {}

  pid_t pid_;

  base::UniqueFd orders_;  // to it
  base::UniqueFd end_;     // closed when it has ended
};

}  // namespace ddpdoctor::cli
