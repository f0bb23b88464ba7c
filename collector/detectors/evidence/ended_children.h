// SPDX-License-Identifier: Apache-2.0
// Finds child processes of a rank that have ended while the rank still runs: its own workers and
// the programs that it started. Workers of a DataLoader cannot be told apart once they have ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/detectors/evidence/tracebacks.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct EndedChild {
  pid_t pid = 0;
  pid_t parent = 0;
  model::Exit exit{};                     // neither status nor signal: unknown
  std::string command{};                  // empty = unknown
  std::optional<Traceback> traceback{};   // its last one; `log` and `number` are not set
  std::optional<model::CallSite> born{};  // where its parent started it

  /// It was killed by a signal, or its status is not 0.
  [[nodiscard]] bool failed() const {
    return exit.signal.has_value() || exit.status.value_or(0) != 0;
  }
};

/// The ended children of one process: failed ones first, then by descending pid.
std::vector<EndedChild> ended_children(const model::JobModel& job, const model::Process& parent);

/// For example "process 7 (python feed.py)".
std::string name_of(const EndedChild& child);

}  // namespace ddpdoctor::detectors
