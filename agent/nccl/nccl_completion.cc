// SPDX-License-Identifier: Apache-2.0
// The driver's functions are used and not those of the runtime: an error of ours must not become
// cudaGetLastError's answer to the job.
#include "agent/nccl/nccl_completion.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>

#include "agent/cuda/cupti_window.h"
#include "agent/inside.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent::nccl {
namespace {

using Context = void*;
using Event = void*;

struct Driver {
  int (*current)(Context*) = nullptr;
  int (*make_current)(Context) = nullptr;
  int (*create)(Event*, unsigned) = nullptr;
  int (*record)(Event, Stream) = nullptr;
  int (*query)(Event) = nullptr;
  int (*destroy)(Event) = nullptr;
  int (*is_capturing)(Stream, int*) = nullptr;
  int (*exchange_mode)(int*) = nullptr;
};
Driver driver;
enum Readiness : int { kUnasked, kAsking, kOn, kOff };
constinit std::atomic<int> readiness{kUnasked};

constexpr int kDone = 0;
constexpr int kGone = 4;  // the driver is shutting down
constexpr int kNotReady = 600;
constexpr unsigned kNoTiming = 2;

enum Stage : std::uint32_t { kFree, kFilling, kPending };
struct Tracked {
  std::atomic<std::uint32_t> stage;
  bool started;
  Context context;
  Event before;
  Event after;
  Stream stream;
  Span span;
  std::uint64_t order;
};
constexpr std::uint32_t kTracked = 512;
constinit Tracked tracked[kTracked]{};
constinit std::atomic<std::uint32_t> next_slot{0};
constinit std::atomic<std::uint64_t> next_order{0};
constinit std::atomic<std::uint32_t> pending{0};
constinit std::atomic<int> watcher{0};  // 1 = runs
constinit std::atomic<bool> asking{false};

template <typename F>
bool find(void* library, F*& function, const char* name, const char* newer = nullptr) {
  if (newer != nullptr) {
    function = reinterpret_cast<F*>(dlsym(library, newer));
  }
  if (function == nullptr) {
    function = reinterpret_cast<F*>(dlsym(library, name));
  }
  return function != nullptr;
}

bool find_driver() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read only
  const char* const wanted = getenv("DDPDOCTOR_NCCL_EVENTS");
  if (wanted != nullptr && wanted[0] == '0') {
    return false;
  }
  void* const library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) {
    return false;
  }
  return find(library, driver.current, "cuCtxGetCurrent") &&
         find(library, driver.make_current, "cuCtxSetCurrent") &&
         find(library, driver.create, "cuEventCreate") &&
         find(library, driver.record, "cuEventRecord") &&
         find(library, driver.query, "cuEventQuery") &&
         find(library, driver.destroy, "cuEventDestroy", "cuEventDestroy_v2") &&
         find(library, driver.is_capturing, "cuStreamIsCapturing") &&
         find(library, driver.exchange_mode, "cuThreadExchangeStreamCaptureMode");
}

bool usable() {
  const int seen = readiness.load(std::memory_order_acquire);
  if (seen == kOn || seen == kOff) {
    return seen == kOn;
  }
  int expected = kUnasked;
  if (!readiness.compare_exchange_strong(expected, kAsking, std::memory_order_acq_rel)) {
    return false;  // another thread asks right now
  }
  const Inside inside;
  const bool found = find_driver();
  readiness.store(found ? kOn : kOff, std::memory_order_release);
  return found;
}

/// Whether an older pair of the same stream is still open: then this one is, too.
bool is_behind(const Tracked& one) {
  for (const Tracked& other : tracked) {
    if (&other != &one && other.stage.load(std::memory_order_acquire) == kPending &&
        other.stream == one.stream && other.context == one.context && other.order < one.order) {
      return true;
    }
  }
  return false;
}

/// True when the pair is done with.
bool look_at(wire::Ring& ring, Tracked& one, Context& current) {
  if (current != one.context) {
    driver.make_current(one.context);  // it exists; none is made
    current = one.context;
  }
  const int after = driver.query(one.after);
  if (after == kGone) {
    readiness.store(kOff, std::memory_order_release);  // the process ends
    return false;
  }
  if (after != kNotReady) {
    call_ended(ring, one.span, after == kDone ? wire::Phase::kCompleted : wire::Phase::kFailed);
    pending.fetch_sub(1, std::memory_order_relaxed);
    one.stage.store(kFree, std::memory_order_release);
    return true;
  }
  if (!one.started && driver.query(one.before) == kDone) {
    one.started = true;
    call_ended(ring, one.span, wire::Phase::kStarted);
  }
  return false;
}

/// What the GPU finished since the watcher looked last: a job that synchronises and ends at once
/// must not look as if its last calls were still open.
void last_look(wire::Ring& ring) {
  int relaxed = 2;
  driver.exchange_mode(&relaxed);
  Context before = nullptr;
  driver.current(&before);
  Context current = before;
  for (bool moved = true; moved;) {
    moved = false;
    for (Tracked& one : tracked) {
      if (one.stage.load(std::memory_order_acquire) == kPending && !is_behind(one)) {
        moved = look_at(ring, one, current) || moved;
      }
    }
  }
  if (current != before) {
    driver.make_current(before);
  }
  driver.exchange_mode(&relaxed);
}

/// Before CUDA's own handlers, which were registered earlier: nobody may ask the driver while it is
/// taken down.
void process_ends(int, void*) {
  if (watcher.load(std::memory_order_acquire) == 0) {
    return;
  }
  int expected = kOn;
  if (!readiness.compare_exchange_strong(expected, kOff, std::memory_order_seq_cst)) {
    return;
  }
  constexpr int kMostWaits = 100;
  const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int i = 0; i < kMostWaits && asking.load(std::memory_order_seq_cst); ++i) {
    nanosleep(&pause, nullptr);
  }
  const Inside inside;
  wire::Ring* const ring_now = ring();
  if (ring_now != nullptr && !asking.load(std::memory_order_seq_cst)) {
    last_look(*ring_now);
  }
}

/// When the call that is now the oldest unfinished one became the oldest.
class Oldest {
 public:
  std::uint64_t since() {
    std::uint64_t order = kNone;
    for (const Tracked& one : tracked) {
      if (one.stage.load(std::memory_order_acquire) == kPending && one.order < order) {
        order = one.order;
      }
    }
    if (order != order_) {
      order_ = order;
      since_ = order == kNone ? 0 : now();
    }
    return since_;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t order_ = kNone;
  std::uint64_t since_ = 0;
};

void* watch(void*) {
  inside_depth = 1;
  int relaxed = 2;
  driver.exchange_mode(&relaxed);  // or our questions would end a capture of another thread
  Context current = nullptr;
  Oldest oldest;
  while (readiness.load(std::memory_order_acquire) == kOn) {
    bool moved = false;
    asking.store(true, std::memory_order_seq_cst);
    wire::Ring* const ring_now = ring();
    if (ring_now != nullptr && readiness.load(std::memory_order_seq_cst) == kOn) {
      for (Tracked& one : tracked) {
        if (one.stage.load(std::memory_order_acquire) == kPending && !is_behind(one)) {
          moved = look_at(*ring_now, one, current) || moved;
        }
      }
      std::atomic_ref(ring_now->header.watcher_time).store(now(), std::memory_order_relaxed);
      cupti::consider_window(*ring_now, oldest.since());
    }
    asking.store(false, std::memory_order_seq_cst);
    constexpr std::uint32_t kMany = 64;
    const bool many = moved && pending.load(std::memory_order_relaxed) > kMany;
    const timespec pause{.tv_sec = 0, .tv_nsec = many ? 2'000'000 : 20'000'000};
    nanosleep(&pause, nullptr);
  }
  return nullptr;
}

void start_watcher() {
  int expected = 0;
  if (!watcher.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) {
    return;
  }
  const Inside inside;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the job's
  pthread_attr_t attributes;
  pthread_t thread{};
  constexpr std::size_t kStack = 256 * 1024;
  bool made = pthread_attr_init(&attributes) == 0;
  if (made) {
    pthread_attr_setstacksize(&attributes, kStack);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    made = pthread_create(&thread, &attributes, watch, nullptr) == 0;
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!made) {
    readiness.store(kOff, std::memory_order_release);
    return;
  }
  pthread_setname_np(thread, "ddpdoctor");
  on_exit(process_ends, nullptr);
}

bool has_events(Tracked& one, Context context) {
  if (one.context == context && one.before != nullptr && one.after != nullptr) {
    return true;
  }
  if (one.before != nullptr) {
    driver.destroy(one.before);
  }
  if (one.after != nullptr) {
    driver.destroy(one.after);
  }
  one.before = nullptr;
  one.after = nullptr;
  one.context = context;
  return driver.create(&one.before, kNoTiming) == kDone &&
         driver.create(&one.after, kNoTiming) == kDone;
}

}  // namespace

Pair begin_pair(Stream stream) {
  if (!usable()) {
    return {};
  }
  Context context = nullptr;
  int capturing = 0;
  if (driver.current(&context) != kDone || context == nullptr ||
      driver.is_capturing(stream, &capturing) != kDone) {
    return {};
  }
  if (capturing != 0) {
    return {.begun = Begun::kCaptured};
  }
  const std::uint32_t slot = next_slot.fetch_add(1, std::memory_order_relaxed) % kTracked;
  Tracked& one = tracked[slot];
  std::uint32_t expected = kFree;
  if (!one.stage.compare_exchange_strong(expected, kFilling, std::memory_order_acq_rel)) {
    return {};  // all pairs are in use: a later call of the stream will tell
  }
  if (!has_events(one, context) || driver.record(one.before, stream) != kDone) {
    one.stage.store(kFree, std::memory_order_release);
    return {};
  }
  return {.begun = Begun::kTracked, .slot = slot};
}

bool end_pair(const Pair& pair, Stream stream, const Span& span, bool launched) {
  if (pair.begun != Begun::kTracked) {
    return false;
  }
  Tracked& one = tracked[pair.slot];
  if (!launched || driver.record(one.after, stream) != kDone) {
    one.stage.store(kFree, std::memory_order_release);
    return false;
  }
  one.stream = stream;
  one.span = span;
  one.started = false;
  one.order = next_order.fetch_add(1, std::memory_order_relaxed);
  pending.fetch_add(1, std::memory_order_relaxed);
  one.stage.store(kPending, std::memory_order_release);
  if (watcher.load(std::memory_order_relaxed) == 0) {
    start_watcher();
  }
  return true;
}

void call_ended(wire::Ring& ring, const Span& span, wire::Phase phase) {
  if (span.group == 0) {
    return;
  }
  wire::Group& group = ring.group[span.group - 1];
  if (phase == wire::Phase::kCompleted && !span.point_to_point) {
    const std::atomic_ref<std::uint32_t> completed(group.completed);
    std::uint32_t before = completed.load(std::memory_order_relaxed);
    while (span.last > before &&
           !completed.compare_exchange_weak(before, span.last, std::memory_order_relaxed)) {
    }
    group.last_completed_time = now();
  }
  if (phase == wire::Phase::kFailed) {
    std::atomic_ref(group.failed).fetch_add(1, std::memory_order_relaxed);
  }
  for (std::uint32_t sequence = span.first; sequence <= span.last; ++sequence) {
    record(ring, {.kind = span.point_to_point ? wire::EventKind::kPointToPoint
                                              : wire::EventKind::kCollective,
                  .phase = phase,
                  .operation = span.operation,
                  .group = span.group,
                  .group_sequence = sequence});
  }
}

void stop_watching() {
  watcher.store(0, std::memory_order_relaxed);
  asking.store(false, std::memory_order_relaxed);
  int expected = kOn;
  readiness.compare_exchange_strong(expected, kOff, std::memory_order_acq_rel);
}

}  // namespace ddpdoctor::agent::nccl
