// SPDX-License-Identifier: Apache-2.0
// Raw system calls: libc's write and close are doors of this agent.
#include "agent/record/safe_read.h"

#include <fcntl.h>
#include <unistd.h>

#include <sys/syscall.h>

namespace ddpdoctor::agent {

SafeRead::SafeRead() {
  if (syscall(SYS_pipe2, ends_, O_CLOEXEC | O_NONBLOCK) != 0) {
    ends_[0] = ends_[1] = -1;
  }
}

SafeRead::~SafeRead() {
  for (const int end : ends_) {
    if (end >= 0) {
      syscall(SYS_close, end);
    }
  }
}

bool SafeRead::bytes(std::uint64_t address, void* into, std::size_t bytes) {
  constexpr std::size_t kAtomic = 4096;  // PIPE_BUF
  if (!possible() || bytes > kAtomic) {
    return false;
  }
  const long written = syscall(SYS_write, ends_[1], address, bytes);
  // a pipe keeps what came before the fault
  const long taken = syscall(SYS_read, ends_[0], into, bytes);
  return written == static_cast<long>(bytes) && taken == written;
}

}  // namespace ddpdoctor::agent
