// SPDX-License-Identifier: Apache-2.0
// stat and fstat as direct system calls: glibc 2.33 renamed its functions, and newer versions keep
// __fxstat only for programs linked earlier. On 64-bit Linux the kernel fills the same struct that
// libc declares.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/syscall.h>

namespace ddpdoctor::agent {

/// fstat: true if `into` was filled.
inline bool status_of(int descriptor, struct stat& into) {
  return syscall(SYS_fstat, descriptor, &into) == 0;
}

/// stat: true if `into` was filled.
inline bool status_of(const char* path, struct stat& into) {
  return syscall(SYS_newfstatat, AT_FDCWD, path, &into, 0) == 0;
}

}  // namespace ddpdoctor::agent
