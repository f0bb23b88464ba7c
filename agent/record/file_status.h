// SPDX-License-Identifier: Apache-2.0
// stat and fstat by the kernel's own doors: glibc 2.33 renamed its functions, and what an older one
// calls __fxstat a newer one only keeps for programs that were linked long ago. On 64-bit Linux the
// kernel fills the very struct that libc declares.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/syscall.h>

namespace ddpdoctor::agent {

/// fstat: true when `into` is filled.
inline bool status_of(int descriptor, struct stat& into) {
  return syscall(SYS_fstat, descriptor, &into) == 0;
}

/// stat: true when `into` is filled.
inline bool status_of(const char* path, struct stat& into) {
  return syscall(SYS_newfstatat, AT_FDCWD, path, &into, 0) == 0;
}

}  // namespace ddpdoctor::agent
