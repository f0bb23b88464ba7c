// SPDX-License-Identifier: Apache-2.0
// `ddpdoctor run`: stands beside a running command, says at once what is provable and, after a time
// without any collective, what is suspected; otherwise it is not there.
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
  double hang_timeout = 30;  // seconds without a collective before we look
  bool kill_on_hang = false;
  bool values = true;          // see ObserveOptions
  Company* company = nullptr;  // null = this node is the whole job
};

/// Why a job is handed over for diagnosis.
/// kAhead: it trains, and was glanced at. kAsked: the company wants to see it.
enum class Occasion { kProvable, kSuspected, kInterrupted, kEnded, kAhead, kAsked };

/// What the listener made of it.
struct Opinion {
  bool finding = false;  // something certain or likely was said
  bool hang = false;     // and it is a hang: on --on-hang kill the job is to be ended
};

/// Is given every job that is worth a diagnosis.
using Listener = std::function<Opinion(model::JobModel job, Occasion occasion)>;

struct Outcome {
  int status = 0;  // as a shell would say it: 128 + N for signal N
  bool ended_by_us = false;
  bool gave_up_waiting = false;  // its owner ended it in a standstill that had been looked into
};

/// Watches `child` and everything below it until it ends, or ends it. Call block_signals() before
/// the child is launched.
Outcome supervise(pid_t child, const std::string& spool, const SuperviseOptions& options,
                  const Listener& listener);

/// From here on SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD are taken by supervise().
void block_signals();

}  // namespace ddpdoctor::monitor
