// SPDX-License-Identifier: Apache-2.0
// A parent that ends its children. After one rank fails, launchers end all others, sometimes with
// the same signal, and reap them in any order: at the time of the signal, this distinguishes a
// child that was ended from one that was already exiting.
#include <csignal>
#include <unistd.h>

#include <sys/types.h>

#include "agent/inside.h"
#include "agent/process/their_stat.h"
#include "agent/real.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

constinit Real<int (*)(pid_t, int)> real_kill{"kill"};
constinit Real<int (*)(pid_t, int)> real_killpg{"killpg"};

bool ends_by_default(int number) {
  return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGQUIT ||
         number == SIGABRT || number == SIGHUP;
}

/// Only for children, and for groups led by a child.
void about_to_end(pid_t child, int number) {
  const Inside inside;
  if (!inside || child <= 1 || !ends_by_default(number)) {
    return;
  }
  const TheirStat stat = stat_of(child);
  if (stat.parent != getpid()) {
    return;
  }
  wire::Ring* const ring_now = ring_or_make();
  if (ring_now != nullptr && ring_now->header.pid == static_cast<std::uint32_t>(getpid())) {
    record(*ring_now, {.kind = wire::EventKind::kSignalSent,
                       .phase = stat.ending ? wire::Phase::kCompleted : wire::Phase::kEnqueued,
                       .count = child,
                       .peer = number});
  }
}

}  // namespace

/// A handler may be the first to send a signal, and dlsym must not be called there.
void find_functions_that_kill() {
  real_kill.get();
  real_killpg.get();
}

}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;

extern "C" {

EXPORT int kill(pid_t pid, int number) noexcept {
  about_to_end(pid < -1 ? -pid : pid, number);
  return real_kill.get()(pid, number);
}

EXPORT int killpg(pid_t group, int number) noexcept {
  about_to_end(group, number);
  return real_killpg.get()(group, number);
}
}
