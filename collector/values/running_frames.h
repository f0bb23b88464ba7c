// SPDX-License-Identifier: Apache-2.0
// The user's functions on the stacks of a process, for readers of what their lines name.
#pragma once

#include <cstddef>

#include "collector/model/questions.h"
#include "collector/stacks/python_visit.h"

namespace ddpdoctor::values {

inline constexpr std::size_t kMostRunning = 12;  // frames of a thread, innermost first

/// Calls `read(tid, frame)` with each.
template <class Read>
void each_running(const stacks::PythonVisit& visit, const Read& read) {
  for (const stacks::PythonVisit::Thread& thread : visit.threads) {
    std::size_t frames = 0;
    for (const stacks::PythonFrame& one : thread.frames) {
      if (!one.raw.shim && one.frame.line > 0 && model::is_user_file(one.frame.file) &&
          ++frames <= kMostRunning) {
        read(thread.tid, one);
      }
    }
  }
}

}  // namespace ddpdoctor::values
