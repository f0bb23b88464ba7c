// SPDX-License-Identifier: Apache-2.0
// System calls that exist on AArch64 only under the newer of two names: those that its C library
// uses for epoll_wait() and pause().
#pragma once

#include <sys/syscall.h>

namespace ddpdoctor::test {

#ifdef SYS_epoll_wait
constexpr int kEpollWait = SYS_epoll_wait;
constexpr int kPause = SYS_pause;
#else
constexpr int kEpollWait = SYS_epoll_pwait;
constexpr int kPause = SYS_ppoll;
#endif

}  // namespace ddpdoctor::test
