// SPDX-License-Identifier: Apache-2.0
// What /proc says of another process. Nothing but system calls, so that signal handlers may ask.
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
  bool ending = false;  // it is on its way out or a zombie: no signal can be the reason any more
  std::uint64_t start_ticks = 0;
};

/// Of the process (of its main thread, where a field is about threads).
TheirStat stat_of(pid_t pid);

}  // namespace ddpdoctor::agent
