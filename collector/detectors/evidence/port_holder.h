// SPDX-License-Identifier: Apache-2.0
// A program outside the job that listens on the rendezvous port: the ranks connect to it and get no
// answer, or the rank that should serve the rendezvous finds the port in use.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

/// The process that holds the rendezvous port and is not part of the job.
struct PortHolder {
  pid_t pid = 0;
  std::string command;
  // It runs another program than the ranks: neither an unobserved rank nor a previous attempt of
  // this job.
  bool foreign = false;
};

/// The port holder in a "listen" fact.
std::optional<PortHolder> port_holder(const model::JobModel& job, const model::Fact& listen);

/// True if any "listen" fact shows a foreign one.
bool stranger_holds_port(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
