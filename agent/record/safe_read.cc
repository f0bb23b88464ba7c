// SPDX-License-Identifier: Apache-2.0
// Raw system calls, because this agent interposes libc's open and close.
#include "agent/record/safe_read.h"

#include <fcntl.h>
#include <unistd.h>

#include <sys/syscall.h>

namespace ddpdoctor::agent {

SafeRead::SafeRead()
    : file_(
          static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY | O_CLOEXEC))) {
}

SafeRead::~SafeRead() {
  if (possible()) {
    syscall(SYS_close, file_);
  }
}

bool SafeRead::bytes(std::uint64_t address, void* into, std::size_t bytes) {
  constexpr std::size_t kMost = 4096;
  return possible() && bytes <= kMost &&
         syscall(SYS_pread64, file_, into, bytes, address) == static_cast<long>(bytes);
}

}  // namespace ddpdoctor::agent
