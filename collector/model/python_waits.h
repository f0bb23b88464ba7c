// SPDX-License-Identifier: Apache-2.0
// What a frame of Python's standard library waits for.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// What ends the wait.
enum class PythonWait {
  kNone,       // not a frame of these modules
  kLock,       // Lock.acquire, RLock.acquire: of threading
  kSignal,     // of another thread: Condition, Event, Thread.join
  kQueue,      // of the process: queue.Queue
  kFuture,     // Future.result, wait, as_completed: of a thread, or of a process behind it
  kProcesses,  // queues, locks, pipes and children of multiprocessing
  kEvents,     // select, an event loop of asyncio
};
/// By the module of the frame, and by the function in threading.
PythonWait python_wait(const Frame& frame);

/// Only a thread of the same process or a handler of a signal ends it.
constexpr bool is_of_own_threads(PythonWait wait) {
  return wait == PythonWait::kLock || wait == PythonWait::kSignal || wait == PythonWait::kQueue;
}

/// Of the module threading.
constexpr bool is_of_threading(PythonWait wait) {
  return wait == PythonWait::kLock || wait == PythonWait::kSignal;
}

/// The program means to wait until another thread or process acts. For a lock it does not.
constexpr bool is_on_purpose(PythonWait wait) {
  return wait != PythonWait::kNone && wait != PythonWait::kLock;
}

}  // namespace ddpdoctor::model
