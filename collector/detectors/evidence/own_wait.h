// SPDX-License-Identifier: Apache-2.0
// Waits that only another thread of the same process can end: a mutex, a condition variable, an
// unnamed semaphore, a pool of native threads, the GIL. Other processes cannot wake such a thread.
#pragma once

#include <optional>

#include "collector/model/job_model.h"
#include "collector/model/native_code.h"

namespace ddpdoctor::detectors {

enum class OwnWaitKind { kLock, kSignal, kPool };

struct OwnWait {
  OwnWaitKind kind = OwnWaitKind::kLock;
  const model::Frame* asker = nullptr;  // the innermost function outside libc and the lock's code
  const model::NativePool* pool = nullptr;  // for kPool
};

/// Nothing if the wait has a timeout, if a different process may end it (a semaphore of
/// multiprocessing), or if Python code waits on purpose (a queue, an event: a signal handler may
/// end it).
std::optional<OwnWait> own_wait(const model::Thread& thread);

/// The process has one thread, and it waits in native code as above. It is not its own owner: the
/// function that waits is not on its stack a second time.
std::optional<OwnWait> waits_alone(const model::Process& process);

/// glibc's frames show that the futex is of this process alone.
bool is_private_futex(const model::Thread& thread);

/// Whether all threads of the process are known, and not only those of Python.
bool lists_native_threads(const model::Process& process);

/// The program has returned, and the interpreter, exit handlers or destructors of C++ run.
bool is_exiting(const model::Thread& thread);

}  // namespace ddpdoctor::detectors
