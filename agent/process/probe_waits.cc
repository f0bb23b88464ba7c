// SPDX-License-Identifier: Apache-2.0
// Threads that wait for each other in libc: barriers and semaphores (multiprocessing's locks). A
// wait is in a table of the ring while it lasts and becomes an event only if it was long: programs
// that reach a barrier a million times per second must not displace all other events.
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "agent/inside.h"
#include "agent/real.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

constinit Real<int (*)(pthread_barrier_t*)> real_barrier_wait{"pthread_barrier_wait"};
constinit Real<int (*)(sem_t*)> real_sem_wait{"sem_wait"};
constinit Real<int (*)(sem_t*, const timespec*)> real_sem_timedwait{"sem_timedwait"};
constinit Real<int (*)(sem_t*, clockid_t, const timespec*)> real_sem_clockwait{"sem_clockwait"};
constinit Real<int (*)(sem_t*, int*)> real_sem_getvalue{"sem_getvalue"};

constexpr std::uint64_t kLong = 10'000'000;  // nanoseconds from which a wait becomes an event
constexpr std::uint32_t kTries = 8;
constexpr std::uint32_t kBeingFilled = ~std::uint32_t{0};

/// Reuses the entry of a thread that no longer exists: it was cancelled during its wait.
__attribute__((noinline, cold)) wire::Wait* take_from_the_dead(wire::Ring& ring,
                                                               std::uint32_t tid) {
  const Inside inside;
  for (std::uint32_t i = 0; i < kTries; ++i) {
    wire::Wait& place = ring.header.wait[(tid + i) % wire::kWaits];
    std::uint32_t seen = place.tid.load(std::memory_order_relaxed);
    const bool dead = seen != 0 && seen != kBeingFilled &&
                      syscall(SYS_tgkill, getpid(), static_cast<pid_t>(seen), 0) != 0;
    if (dead && place.tid.compare_exchange_strong(seen, kBeingFilled, std::memory_order_acquire)) {
      return &place;
    }
  }
  return nullptr;
}

/// Reserves an entry in the table; null if all tried entries are in use.
wire::Wait* take_place(wire::Ring& ring, std::uint32_t tid) {
  for (std::uint32_t i = 0; i < kTries; ++i) {
    wire::Wait& place = ring.header.wait[(tid + i) % wire::kWaits];
    std::uint32_t seen = 0;
    if (place.tid.compare_exchange_strong(seen, kBeingFilled, std::memory_order_acquire) ||
        seen == tid) {
      return &place;
    }
  }
  return take_from_the_dead(ring, tid);
}

void tell_long_wait(wire::Ring& ring, const void* object, const char* call, std::uint64_t lasted) {
  const Inside inside;
  record(ring, {.kind = wire::EventKind::kWaitEnd,
                .site = call_site(ring),
                .object = reinterpret_cast<std::uint64_t>(object),
                .count = static_cast<std::int64_t>(lasted),
                .text = intern(ring, call, strlen(call))});
}

template <typename Call>
int waited(wire::WaitKind kind, const void* object, const char* name, Call call) {
  wire::Ring* const ring_now = inside_depth == 0 ? ring() : nullptr;
  wire::Wait* const place = ring_now != nullptr ? take_place(*ring_now, thread_id()) : nullptr;
  if (place == nullptr) {
    return call();
  }
  const std::uint64_t began = now();
  place->kind = static_cast<std::uint32_t>(kind);
  place->object = reinterpret_cast<std::uint64_t>(object);
  place->since = began;
  place->tid.store(thread_id(), std::memory_order_release);
  const int result = call();
  place->tid.store(0, std::memory_order_release);
  if (const std::uint64_t lasted = now() - began; lasted > kLong) {
    tell_long_wait(*ring_now, object, name, lasted);
  }
  return result;
}

bool is_free(sem_t* semaphore) {
  int value = 0;
  const auto real = real_sem_getvalue.get();  // null: glibc before 2.34 and no libpthread
  return real != nullptr && real(semaphore, &value) == 0 && value > 0;
}

}  // namespace

/// The first wait for a semaphore may be in a signal handler, where dlsym must not be used.
void find_functions_of_waits() {
  real_barrier_wait.get();
  real_sem_wait.get();
  real_sem_timedwait.get();
  real_sem_clockwait.get();
  real_sem_getvalue.get();
}

}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;
using ddpdoctor::wire::WaitKind;

extern "C" {

EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  return waited(WaitKind::kBarrier, barrier, "pthread_barrier_wait",
                [barrier] { return real_barrier_wait.get()(barrier); });
}

EXPORT int sem_wait(sem_t* semaphore) {
  if (is_free(semaphore)) {
    return real_sem_wait.get()(semaphore);
  }
  return waited(WaitKind::kSemaphore, semaphore, "sem_wait",
                [semaphore] { return real_sem_wait.get()(semaphore); });
}

EXPORT int sem_timedwait(sem_t* semaphore, const struct timespec* until) {
  if (is_free(semaphore)) {
    return real_sem_timedwait.get()(semaphore, until);
  }
  return waited(WaitKind::kSemaphore, semaphore, "sem_timedwait",
                [&] { return real_sem_timedwait.get()(semaphore, until); });
}

EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const struct timespec* until) {
  if (real_sem_clockwait.get() == nullptr) {  // glibc before 2.30 does not have it
    errno = ENOSYS;
    return -1;
  }
  if (is_free(semaphore)) {
    return real_sem_clockwait.get()(semaphore, clock, until);
  }
  return waited(WaitKind::kSemaphore, semaphore, "sem_clockwait",
                [&] { return real_sem_clockwait.get()(semaphore, clock, until); });
}
}
