// SPDX-License-Identifier: Apache-2.0
#include "collector/model/python_waits.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/path_ends.h"

namespace ddpdoctor::model {
namespace {

struct WaitingModule {
  std::string_view file;  // the end of its path
  PythonWait wait = PythonWait::kNone;
};

constexpr std::array<WaitingModule, 10> kWaitingModules = {{
    {"threading.py", PythonWait::kSignal},
    {"queue.py", PythonWait::kQueue},
    {"concurrent/futures/_base.py", PythonWait::kFuture},
    {"multiprocessing/queues.py", PythonWait::kProcesses},
    {"multiprocessing/synchronize.py", PythonWait::kProcesses},
    {"multiprocessing/connection.py", PythonWait::kProcesses},
    {"multiprocessing/popen_fork.py", PythonWait::kProcesses},
    {"multiprocessing/pool.py", PythonWait::kProcesses},
    {"selectors.py", PythonWait::kEvents},
    {"asyncio/events.py", PythonWait::kEvents},
}};

}  // namespace

PythonWait python_wait(const Frame& frame) {
  if (frame.language != Language::kPython) {
    return PythonWait::kNone;
  }
  const auto* const found = std::find_if(
      kWaitingModules.begin(), kWaitingModules.end(),
      [&frame](const WaitingModule& one) { return base::path_ends_with(frame.file, one.file); });
  if (found == kWaitingModules.end()) {
    return PythonWait::kNone;
  }
  // `with condition:` waits for its lock; Condition.__enter__ only passes it on to C.
  const bool locks = frame.function.ends_with("acquire") || frame.function.ends_with("__enter__");
  return found->wait == PythonWait::kSignal && locks ? PythonWait::kLock : found->wait;
}

}  // namespace ddpdoctor::model
