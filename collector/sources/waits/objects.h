// SPDX-License-Identifier: Apache-2.0
// The kernel object a thread sleeps at (a pipe, a socket, a semaphore, a lock on a file, a child),
// by a name that is alike in every process, and every process that could end the sleep. A wait of
// which not all who could end it are known is open: nothing follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

/// One thread's sleep at one or several kernel objects.
struct ObjectWait {
  std::string kind;        // pipe, fifo, socket, semaphore, futex, lock, file-lock, process
  std::string object;      // "pipe:[17]", "semaphore:0:1d:77+0", "process:78"; the first of several
  std::string operation;   // "read", "write", "acquire", "join"
  std::set<pid_t> enders;  // of its own process: another thread
  bool open = false;       // somebody who is not known may end it, too
  bool ready = false;      // it is about to end: bytes or room are there, or the count is above 0
  std::optional<std::int64_t> queued{};   // bytes in it that no process has read
  std::optional<std::int64_t> waiters{};  // of a semaphore, as it counts them itself
  std::string name{};                     // path of a locked file or FIFO
};

/// Nothing for a thread that runs, or sleeps at something that is no such object.
std::optional<ObjectWait> object_wait(WaitContext& context, const WaitingThread& waiting);

}  // namespace ddpdoctor::sources
