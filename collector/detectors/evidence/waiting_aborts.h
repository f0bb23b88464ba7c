// SPDX-License-Identifier: Apache-2.0
// Threads that end a communicator of NCCL and wait for its stream: they return only after the work
// before them, which is what they were called to stop.
#pragma once

#include <string>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

struct WaitingAbort {
  const model::Process* process = nullptr;
  const model::Thread* thread = nullptr;
  std::string function;  // "ncclCommAbort"
};

/// Of the processes of these ranks.
std::vector<WaitingAbort> waiting_aborts(const graph::Examination& examination,
                                         const model::RankSet& ranks);

/// Adds to a finding about ranks behind their GPUs that the end of a communicator waits, too.
void tell_waiting_aborts(const graph::Examination& examination, Finding& finding);

}  // namespace ddpdoctor::detectors
