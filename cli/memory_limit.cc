// SPDX-License-Identifier: Apache-2.0
#include "cli/memory_limit.h"

#include <sys/resource.h>

namespace ddpdoctor::cli {

namespace {

constexpr rlim_t kMostMemory = rlim_t{768}
                               << 20U;  // a capture of 100 threads needs a tenth of this

}  // namespace

void limit_memory() {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur > kMostMemory) {
    limit.rlim_cur = kMostMemory;
    ::setrlimit(RLIMIT_DATA, &limit);
  }
}

}  // namespace ddpdoctor::cli
