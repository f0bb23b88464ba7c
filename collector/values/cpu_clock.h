// SPDX-License-Identifier: Apache-2.0
// The CPU time of this thread, so that a limit per rank does not depend on the load of the machine.
#pragma once

#include <chrono>
#include <ctime>

namespace ddpdoctor::values {

struct CpuClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<CpuClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
  }
};

}  // namespace ddpdoctor::values
