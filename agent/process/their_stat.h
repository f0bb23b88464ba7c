// SPDX-License-Identifier: Apache-2.0
// The data of /proc about another process. Uses only system calls, so that signal handlers may use
// it.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace ddpdoctor::agent {

/// "/proc/PID/NAME"
struct ProcPath {
  char text[64] = "/proc/";
  ProcPath(pid_t pid, const char* name);
};

struct TheirStat {
  pid_t parent = 0;     // 0 = no such process
  bool ending = false;  // exiting or a zombie: a signal cannot be the cause any more
  std::uint64_t start_ticks = 0;
};

/// Data of the process (of its main thread, for fields about threads).
TheirStat stat_of(pid_t pid);

}  // namespace ddpdoctor::agent
