// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/holdup.h"

#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/processes.h"
#include "collector/detectors/signs.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

bool waits_for_threads(const model::Thread& main) {
  return python_frame_in(main, "/threading.py", {"_shutdown"}) != nullptr ||
         model::has_native_frame(main, "wait_for_thread_shutdown");
}

bool waits_for_children(const model::Thread& main) {
  return python_frame_in(main, "multiprocessing/util.py", {"_exit_function", "_run_finalizers"}) !=
             nullptr ||
         python_frame_in(main, "concurrent/futures/process.py", {"_python_exit", "shutdown"}) !=
             nullptr;
}

/// A function that the program registered with atexit: called by the interpreter's end, not by its
/// main module.
bool runs_atexit(const model::Thread& main) {
  const bool ends = model::has_native_frame(main, "atexit_callfuncs") ||
                    model::has_native_frame(main, "Py_FinalizeEx");
  return ends && own_user_frame(main) != nullptr;
}

bool destroys_group(const model::Thread& main) {
  return python_frame_in(main, "torch/distributed/distributed_c10d.py",
                         {"destroy_process_group"}) != nullptr;
}

}  // namespace

const model::Thread* user_thread(const model::Process& process, const model::Thread& main) {
  const auto found = std::find_if(process.threads.begin(), process.threads.end(),
                                  [&main](const model::Thread& thread) {
                                    return &thread != &main && own_user_frame(thread) != nullptr;
                                  });
  return found == process.threads.end() ? nullptr : &*found;
}

std::optional<Holdup> holdup(const model::JobModel& job, const model::Process& process,
                             const model::Thread& main) {
  if (waits_for_threads(main)) {
    const model::Thread* thread = user_thread(process, main);
    return Holdup{.process = &process,
                  .thread = thread == nullptr ? &main : thread,
                  .what = thread == nullptr
                              ? "a thread that does not end"
                              : fmt::format("thread {} ({})", thread->tid, thread->name)};
  }
  if (python_frame_in(main, "multiprocessing/queues.py", {"_finalize_join"}) != nullptr) {
    const auto feeder = std::find_if(
        process.threads.begin(), process.threads.end(), [](const model::Thread& thread) {
          return python_frame_in(thread, "multiprocessing/queues.py", {"_feed"}) != nullptr;
        });
    return Holdup{.process = &process,
                  .thread = feeder == process.threads.end() ? &main : &*feeder,
                  .what = "the feeder thread of a multiprocessing queue"};
  }
  if (waits_for_children(main)) {
    for (const model::Process* child : children_of(job, process)) {
      const model::Thread* thread = model::main_thread(*child);
      if (alive(*child) && thread != nullptr && own_user_frame(*thread) != nullptr) {
        return Holdup{.process = child,
                      .thread = thread,
                      .what = fmt::format("child process {}", child->pid)};
      }
    }
    return Holdup{.process = &process, .thread = &main, .what = "a child process"};
  }
  if (runs_atexit(main)) {
    return Holdup{
        .process = &process, .thread = &main, .what = "a function registered with atexit"};
  }
  if (destroys_group(main)) {
    return Holdup{.process = &process, .thread = &main, .what = "destroy_process_group"};
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
