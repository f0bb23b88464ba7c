// SPDX-License-Identifier: Apache-2.0
// Processes that the job started and that are no longer below the command, because their parent has
// exited: they may hold a pipe open that another process reads.
#pragma once

#include <map>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::monitor {

class Strays {
 public:
  /// Of the processes below `root` (this process, their subreaper), those that are neither
  /// `command` nor below it.
  Strays(pid_t root, pid_t command) : root_(root), command_(command) {}

  /// Records each process's context switches so far; `now` is in seconds of any clock.
  void look(double now);
  /// Adds a "stray" fact for each running one, with the rank in its environment: "command" (its
  /// name), "start_time" (seconds since the epoch), "idle_seconds" (time since the check after
  /// which no thread of it has run).
  void add_to(model::JobModel& job) const;

 private:
  struct Seen {
    long turns = 0;
    double since = 0;
    double until = 0;
  };

  pid_t root_;
  pid_t command_;
  std::map<pid_t, Seen> seen_;
};

}  // namespace ddpdoctor::monitor
