// SPDX-License-Identifier: Apache-2.0
// Which libraries start threads: a pool of an OpenMP or BLAS library that exists before a fork is
// dead in the child. Detected at pthread_create, by the calling library, and not by interposing
// GOMP_parallel: several libgomp may be loaded, and forwarding to another copy than the caller's
// own would change results.
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>

#include "agent/inside.h"
#include "agent/process_state.h"
#include "agent/real.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

constinit Real<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>
    real_pthread_create{"pthread_create"};

/// Calling addresses that were judged already; pools start their threads from few addresses.
struct Judged {
  std::atomic<const void*> caller;
  std::atomic<int> pool;
};
constexpr int kJudged = 64;
Judged judged[kJudged];

bool names_a_pool(const char* path) {
  const char* const slash = strrchr(path, '/');
  const char* const name = slash == nullptr ? path : slash + 1;
  for (const char* const start :
       {"libgomp", "libiomp", "libomp", "libopenblas", "libscipy_openblas", "libmkl", "libtbb"}) {
    if (strncmp(name, start, strlen(start)) == 0) {
      return true;
    }
  }
  return false;
}

bool called_by_a_pool(const void* caller) {
  const auto at = (reinterpret_cast<std::uint64_t>(caller) >> 2U) % kJudged;
  if (judged[at].caller.load(std::memory_order_acquire) == caller) {
    return judged[at].pool.load(std::memory_order_relaxed) == 1;
  }
  Dl_info where{};
  const bool pool =
      dladdr(caller, &where) != 0 && where.dli_fname != nullptr && names_a_pool(where.dli_fname);
  judged[at].caller.store(nullptr, std::memory_order_relaxed);
  judged[at].pool.store(pool ? 1 : 0, std::memory_order_relaxed);
  judged[at].caller.store(caller, std::memory_order_release);
  return pool;
}

}  // namespace
}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;

extern "C" {

EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* argument) {
  const int result = real_pthread_create.get()(thread, attributes, start, argument);
  if (result == 0) {
    const Inside inside;
    if (inside && called_by_a_pool(__builtin_return_address(0))) {
      const std::uint32_t threads =
          __atomic_add_fetch(&process_state().team_threads, 1U, __ATOMIC_RELAXED);
      ddpdoctor::wire::Ring* const ring_now = ring();
      if (ring_now != nullptr) {
        ring_now->header.team_size = threads;
        if (threads == 1) {
          record(*ring_now, {.kind = ddpdoctor::wire::EventKind::kTeam, .count = 1});
        }
      }
    }
  }
  return result;
}
}
