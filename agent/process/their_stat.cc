// SPDX-License-Identifier: Apache-2.0
#include "agent/process/their_stat.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "agent/record/decimal.h"

namespace ddpdoctor::agent {
namespace {

// Fields of /proc/PID/stat, counted as in proc(5).
constexpr int kName = 2;
constexpr int kParent = 4;
constexpr int kFlags = 9;
constexpr int kStartTicks = 22;
constexpr unsigned long kExiting = 4;  // PF_EXITING: set before its descriptors are closed

}  // namespace

ProcPath::ProcPath(pid_t pid, const char* name) {
  char* at = put_decimal(text + strlen(text), pid);
  *at++ = '/';
  strcpy(at, name);
}

TheirStat stat_of(pid_t pid) {
  TheirStat stat;
  char text[1024];
  const int fd = open(ProcPath(pid, "stat").text, O_RDONLY | O_CLOEXEC);
  const ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) {
    close(fd);
  }
  text[length > 0 ? length : 0] = 0;
  const char* at = strrchr(text, ')');
  for (int field = kName; at != nullptr && field < kStartTicks; ++field) {
    at = strchr(at + 1, ' ');
    if (at == nullptr) {
      break;
    }
    if (field + 1 == kParent) {
      stat.parent = static_cast<pid_t>(strtol(at + 1, nullptr, 10));
    } else if (field + 1 == kFlags) {
      stat.ending = (strtoul(at + 1, nullptr, 10) & kExiting) != 0;
    }
  }
  stat.start_ticks = at == nullptr ? 0 : strtoull(at + 1, nullptr, 10);
  return stat;
}

}  // namespace ddpdoctor::agent
