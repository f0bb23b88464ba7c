// SPDX-License-Identifier: Apache-2.0
// The thread that holds the GIL, from a dump that does not name it.
#pragma once

#include <optional>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The only Python thread of a process that is not in take_gil, while others are, if it sleeps in a
/// system call: only a thread that holds the GIL keeps them there. Null unless the native frames of
/// all threads are known and no tool named the holder.
const model::Thread* holder_by_elimination(const model::Process& process);

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
