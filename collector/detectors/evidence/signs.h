// SPDX-License-Identifier: Apache-2.0
// Stack patterns that several detectors use: what a waiting thread of CPython, libgomp or
// multiprocessing looks like. Names of static functions are often stripped, so each pattern also
// accepts the names in the dynamic symbol table.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The innermost user line of this process. A forked child still has its parent's frames below its
/// own start: these do not count.
const model::Frame* own_user_frame(const model::Thread& thread);

/// The frames called by the innermost user line (all frames if there is no user line).
std::span<const model::Frame> called_by_user(const model::Thread& thread);

/// A Python frame of one of these functions in the file (of any function in the file if none is
/// given).
const model::Frame* python_frame_in(const model::Thread& thread, std::string_view file_suffix,
                                    std::initializer_list<std::string_view> functions = {});

/// The value of an argument or local variable as it was printed; empty if the frame does not show
/// it.
std::string_view local_of(const model::Frame& frame, std::string_view name);

/// The innermost frame of a native thread pool (libgomp, OpenBLAS, OpenMP of LLVM or Intel) in
/// which `thread` waits for its team.
const model::Frame* waits_for_native_pool(const model::Thread& thread);

/// A worker thread of such a pool.
bool serves_native_pool(const model::Thread& thread);

/// In the C code of a lock of this process: threading.Lock, RLock, a pthread mutex; not a
/// condition, a queue or a semaphore between processes.
bool waits_for_private_lock(const model::JobModel& job, const model::Thread& thread);

/// The expressions that the line of the thread's innermost Python frame locks, in order:
/// "self.lock"; several for `with a, b:`. lock_wanted_by() says which of them the thread waits for.
std::vector<std::string> wanted_locks(const model::JobModel& job, const model::Thread& thread);

/// Asleep in a pthread mutex (or with a `waits_on` that says so).
bool waits_for_mutex(const model::Thread& thread);

bool waits_for_gil(const model::Thread& thread);

/// The main side of a DataLoader, waiting for a batch from its workers.
bool waits_for_batch(const model::Thread& thread);

/// An idle DataLoader worker: waits for indices.
bool waits_for_indices(const model::Thread& thread);

/// A thread asleep in the kernel, by its state.
bool asleep(const model::Thread& thread);

/// Its user line is in a `while`: it polls, so the end of one sleep is not the end of the wait.
bool polls(const model::JobModel& job, const model::Thread& thread);

/// In time.sleep, called by the user.
bool sleeps_by_choice(const model::Thread& thread);

}  // namespace ddpdoctor::detectors
