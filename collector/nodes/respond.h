// SPDX-License-Identifier: Apache-2.0
// The node's side: finds the job of this node by itself, says so, waits for the word, looks, and
// sends the capture over standard output. Whatever becomes of who asked, it ends.
#pragma once

#include <string>

#include "collector/monitor/chosen_job.h"
#include "collector/monitor/observe.h"

namespace ddpdoctor::nodes {

struct RespondOptions {
  std::string session;
  double wait = 8;    // seconds for the word to look, then it looks unasked
  double limit = 60;  // seconds after which it ends, whatever it does
  monitor::JobFilter filter;
  monitor::ObserveOptions observe;
};

/// True when a capture was sent whole.
bool respond(const RespondOptions& options);

}  // namespace ddpdoctor::nodes
