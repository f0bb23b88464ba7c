// SPDX-License-Identifier: Apache-2.0
// `ddpdoctor run`: watches a running command; reports proven problems immediately and suspected
// ones after a time without collectives; otherwise it does nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

#include "collector/model/job_model.h"
#include "collector/monitor/company.h"
#include "collector/monitor/observe.h"

namespace ddpdoctor::monitor {

struct SuperviseOptions {
  double hang_timeout = 30;  // seconds without a collective before a snapshot is taken
  bool kill_on_hang = false;
  bool values = true;          // see ObserveOptions
  Company* company = nullptr;  // null = this node is the whole job
};

/// Why a job is passed on for diagnosis. kAhead: a snapshot of a training job. kAsked: the
/// collector requested it.
enum class Occasion { kProvable, kSuspected, kInterrupted, kEnded, kAhead, kAsked };

/// The result of the listener's diagnosis.
struct Opinion {
  bool finding = false;  // a certain or likely finding was reported
  bool hang = false;     // the finding is a hang: with --on-hang kill the job is ended
};

/// Called with every job that needs a diagnosis.
using Listener = std::function<Opinion(model::JobModel job, Occasion occasion)>;

struct Outcome {
  int status = 0;  // exit status like a shell's: 128 + N for signal N
  bool ended_by_us = false;
  bool gave_up_waiting = false;  // the user ended it during a hang that had been examined
};

/// Watches `child` and its descendants until it ends, or ends it. Call block_signals() before
/// starting the child.
Outcome supervise(pid_t child, const std::string& spool, const SuperviseOptions& options,
                  const Listener& listener);

/// From now on, supervise() handles SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD.
void block_signals();

}  // namespace ddpdoctor::monitor
