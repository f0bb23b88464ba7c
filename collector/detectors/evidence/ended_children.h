// SPDX-License-Identifier: Apache-2.0
// Children of ranks that have ended while their rank lives on: workers of its own making, programs
// that it started. Whether one loaded data is not known of those who have ended.
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
  model::Exit exit{};                     // neither status nor signal: not known
  std::string command{};                  // empty = unknown
  std::optional<Traceback> traceback{};   // the last it wrote; without log and number
  std::optional<model::CallSite> born{};  // where its parent started it

  /// By a signal, or with a status that says so.
  [[nodiscard]] bool failed() const {
    return exit.signal.has_value() || exit.status.value_or(0) != 0;
  }
};

/// Those of one process, who failed first, the newest before the older ones.
std::vector<EndedChild> ended_children(const model::JobModel& job, const model::Process& parent);

/// "process 7 (python feed.py)".
std::string name_of(const EndedChild& child);

}  // namespace ddpdoctor::detectors
