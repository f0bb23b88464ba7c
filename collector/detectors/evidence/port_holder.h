// SPDX-License-Identifier: Apache-2.0
// A program beside the job that listens where the ranks were told to meet: they reach it, and it
// answers nothing, or the rank that should serve the rendezvous finds the port taken.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

/// Who holds the port of the rendezvous and is no process of the job.
struct PortHolder {
  pid_t pid = 0;
  std::string command;
  bool foreign = false;  // it runs another program than the ranks: no rank that was not seen, no
                         // earlier life of this job
};

/// What a "listen" fact tells of one.
std::optional<PortHolder> port_holder(const model::JobModel& job, const model::Fact& listen);

/// Any "listen" fact tells of one that is foreign.
bool stranger_holds_port(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
