// SPDX-License-Identifier: Apache-2.0
// The kernel object a thread sleeps on (a pipe, a socket, a semaphore, a file lock, a child), by a
// name that is the same in every process, and every process that could end the sleep. A wait is
// open if some of these processes are unknown: nothing follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

/// One thread's sleep on one or several kernel objects.
struct ObjectWait {
  std::string kind;  // pipe, fifo, socket, semaphore, futex, lock, file-lock, process
  // "pipe:[17]", "semaphore:0:1d:77+0", "process:78"; the first if there are several.
  std::string object;
  std::string operation;   // "read", "write", "acquire", "join"
  std::set<pid_t> enders;  // its own pid means another thread
  bool open = false;       // an unknown process may also end it
  bool ready = false;      // about to end: bytes or room are available, or the count is above 0
  std::optional<std::int64_t> queued{};   // bytes in it that are not read yet
  std::optional<std::int64_t> waiters{};  // the semaphore's own count of waiters
  std::string name{};                     // path of a locked file or FIFO
};

/// Nothing for a thread that runs, or sleeps on something else.
std::optional<ObjectWait> object_wait(WaitContext& context, const WaitingThread& waiting);

}  // namespace ddpdoctor::sources
