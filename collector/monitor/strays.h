// SPDX-License-Identifier: Apache-2.0
// Processes that the job started and that stand beside the command, because who started them has
// ended: whoever reads a pipe that such a one holds open waits for it.
#pragma once

#include <map>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::monitor {

class Strays {
 public:
  /// Of the processes below `root` (this process, their subreaper) those that are neither `command`
  /// nor below it.
  Strays(pid_t root, pid_t command) : root_(root), command_(command) {}

  /// Counts how often each was given a processor so far; `now` in seconds of any clock.
  void look(double now);
  /// Adds a "stray" fact for each that lives, of the rank whose environment it has: "command" (its
  /// name), "start_time" (seconds since the epoch), "idle_seconds" since the look after which no
  /// thread of it has run.
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
