// SPDX-License-Identifier: Apache-2.0
// While agent code runs, its own libc calls are not recorded and the job's errno is preserved.
#pragma once

#include <cerrno>

namespace ddpdoctor::agent {

extern constinit thread_local int inside_depth;

/// Recursion guard that also restores errno.
class Inside {
 public:
  Inside() : outermost_(inside_depth++ == 0), saved_errno_(errno) {}
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  Inside(Inside&&) = delete;
  Inside& operator=(Inside&&) = delete;
  ~Inside() {
    --inside_depth;
    errno = saved_errno_;
  }
  explicit operator bool() const {
    return outermost_;
  }

 private:
  bool outermost_;
  int saved_errno_;
};

}  // namespace ddpdoctor::agent

#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))
