// SPDX-License-Identifier: Apache-2.0
// The node's side: finds this node's job, reports it, waits for the request, takes a snapshot and
// sends the capture over standard output. It ends even if the asker disappears.
#pragma once

#include <string>

#include "collector/monitor/chosen_job.h"
#include "collector/monitor/observe.h"

namespace ddpdoctor::nodes {

struct RespondOptions {
  std::string session;
  double wait = 8;    // seconds to wait for the request; then it takes the snapshot anyway
  double limit = 60;  // seconds after which it ends in any case
  monitor::JobFilter filter;
  monitor::ObserveOptions observe;
};

/// True if a capture was sent completely.
bool respond(const RespondOptions& options);

}  // namespace ddpdoctor::nodes
