// SPDX-License-Identifier: Apache-2.0
// The thread that holds the GIL, from a dump that does not name it.
#pragma once

#include <optional>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The only Python thread of a process that is not in take_gil and that no frame shows to have
/// released the GIL, while others are, if it sleeps in a system call or waits for a callback: only
/// a thread that holds the GIL keeps them there. Null unless the native frames of all threads are
/// known and no tool named the holder.
const model::Thread* holder_by_elimination(const model::Process& process);

/// The thread that wants the GIL in a function which the library that `holder` waits in has called
/// in a thread of its own: a call of this library may wait for its callbacks. Null if there is
/// none, or if the holder computes.
const model::Thread* callback_behind(const model::Process& process, const model::Thread& holder);

/// A thread that wants the GIL on top of its own Python code, while no other thread of the process
/// runs Python or computes.
struct OwnGil {
  const model::Thread* thread = nullptr;
  const model::Frame* asker = nullptr;    // the native function that wants the GIL; or null
  const model::Thread* joiner = nullptr;  // waits for the end of a thread; or null
};

/// PyGILState_Ensure knows the thread that has the GIL by its thread state: where the outer code
/// was entered with a different one, it waits for its own thread. Or the thread that waits for this
/// one has the GIL. Absent unless the native frames of all threads are known.
std::optional<OwnGil> own_gil(const model::Process& process);

/// A frame between Python's call and the innermost function is one that releases the GIL.
bool has_released_gil(const model::Thread& thread);

/// A library's pool of threads that needs the GIL, while the thread that has it waits for the pool.
struct PoolBehindGil {
  const model::Thread* holder = nullptr;  // else one of several that may be it
  bool only = true;                       // no other thread may be the holder
  std::string_view pool;                  // "rayon"
};

/// Threads of a pool wait for the GIL, and each thread that may have it waits for the same pool:
/// whichever has it, the pool cannot finish. Absent unless the native frames of these threads are
/// known and no tool named the holder.
std::optional<PoolBehindGil> pool_behind_gil(const model::Process& process);

/// In a function of libc that returns when something else happens: Python code that calls it has
/// released the GIL, unless it is the holder for which the others wait.
bool sleeps_in_kernel(const model::Thread& thread);

}  // namespace ddpdoctor::detectors
