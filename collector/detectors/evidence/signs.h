// SPDX-License-Identifier: Apache-2.0
// Signs in stacks that more than one detector reads: what a thread of CPython, libgomp or
// multiprocessing looks like when it waits. Names of static functions are often stripped, so each
// sign also accepts what the dynamic symbol table leaves.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The innermost user line of this process. A forked child still carries its parent's frames below
/// its own start: they are not its own.
const model::Frame* own_user_frame(const model::Thread& thread);

/// Frames called by the innermost user line (all frames when no user line is known).
std::span<const model::Frame> called_by_user(const model::Thread& thread);

/// A Python frame of one of these functions in the file (all of the file's functions when none is
/// given).
const model::Frame* python_frame_in(const model::Thread& thread, std::string_view file_suffix,
                                    std::initializer_list<std::string_view> functions = {});

/// The innermost frame of a native thread pool (libgomp, OpenBLAS, OpenMP of LLVM or Intel) that
/// `thread` waits in for its team.
const model::Frame* waits_for_native_pool(const model::Thread& thread);

/// A worker thread of such a pool.
bool serves_native_pool(const model::Thread& thread);

/// In the C code of a lock of this process: threading.Lock, RLock, a pthread mutex; no condition,
/// no queue, no process-wide semaphore.
bool waits_for_private_lock(const model::JobModel& job, const model::Thread& thread);

/// The expression a thread is about to lock ("self.lock"), from the source line of its innermost
/// Python frame.
std::optional<std::string> wanted_lock(const model::JobModel& job, const model::Thread& thread);

/// Asleep in a pthread mutex (or what `waits_on` calls one).
bool waits_for_mutex(const model::Thread& thread);

bool waits_for_gil(const model::Thread& thread);

/// A DataLoader's main side, waiting for a batch of its workers.
bool waits_for_batch(const model::Thread& thread);

/// An idle worker of a DataLoader: waits for indices.
bool waits_for_indices(const model::Thread& thread);

/// A thread asleep in the kernel, by its state.
bool asleep(const model::Thread& thread);

/// Its user line lies in a `while`: it polls, so that one sleep is not the end of the wait.
bool polls(const model::JobModel& job, const model::Thread& thread);

/// In time.sleep, called by the user.
bool sleeps_by_choice(const model::Thread& thread);

}  // namespace ddpdoctor::detectors
