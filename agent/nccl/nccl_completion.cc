// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl/nccl_completion.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <pthread.h>

#include "agent/cuda/cupti_window.h"
#include "agent/inside.h"
#include "agent/nccl/nccl_driver.h"
#include "agent/real.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent::nccl {
namespace {

using Context = Driver::Context;

/// A pair is pending from its second event on. Spans that do not fit into it follow in entries
/// without events.
enum Stage : std::uint32_t { kFree, kFilling, kPending, kFollowing };
struct Tracked {
  std::atomic<std::uint32_t> stage;
  bool started;
  Context context;
  Driver::Event before;
  Driver::Event after;
  Stream stream;
  Span span;           // without a group: no call yet
  std::uint32_t next;  // index of the next span's entry + 1, 0 = none
  std::uint32_t tail;  // index of the chain's last entry + 1, 0 = this one
  std::uint64_t order;
};
constexpr std::uint32_t kTracked = 512;
constinit Tracked tracked[kTracked]{};
constinit std::atomic<std::uint32_t> next_slot{0};
constinit std::atomic<std::uint64_t> next_order{0};
constinit std::atomic<std::uint32_t> pending{0};
constinit std::atomic<int> watcher{0};  // 1 = runs
constinit std::atomic<bool> asking{false};

/// An entry of our own, or null. A hanging launch keeps its entry, so the next ones are tried.
Tracked* take_entry() {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    Tracked& one = tracked[next_slot.fetch_add(1, std::memory_order_relaxed) % kTracked];
    std::uint32_t expected = kFree;
    if (one.stage.compare_exchange_strong(expected, kFilling, std::memory_order_acq_rel)) {
      one.span = {};
      one.next = 0;
      one.tail = 0;
      one.started = false;
      return &one;
    }
  }
  return nullptr;
}

std::uint32_t number_of(const Tracked& one) {
  return static_cast<std::uint32_t>(&one - tracked) + 1;
}

/// Every span of the pair.
template <typename Function>
void each_span(const Tracked& leader, Function function) {
  function(leader.span);
  for (std::uint32_t next = leader.next; next != 0; next = tracked[next - 1].next) {
    function(tracked[next - 1].span);
  }
}

void give_back(Tracked& leader) {
  for (std::uint32_t next = leader.next; next != 0;) {
    Tracked& one = tracked[next - 1];
    next = one.next;
    one.stage.store(kFree, std::memory_order_release);
  }
  leader.stage.store(kFree, std::memory_order_release);
}

/// Streams whose oldest launch is unfinished: later launches on them need no query.
class Blocked {
 public:
  /// Adds the stream; true if it was there already.
  bool contains(const Tracked& one) {
    return *place(key(one)) != 0;
  }
  void add(const Tracked& one) {
    *place(key(one)) = key(one);
  }

 private:
  static constexpr std::uint32_t kTable = 2 * kTracked;  // never full
  static std::uint64_t key(const Tracked& one) {
    const std::uint64_t mixed =
        reinterpret_cast<std::uint64_t>(one.stream) ^
        (reinterpret_cast<std::uint64_t>(one.context) * 0x9E3779B97F4A7C15U);
    return mixed == 0 ? 1 : mixed;
  }
  std::uint64_t* place(std::uint64_t wanted) {
    std::uint64_t at = (wanted * 0x9E3779B97F4A7C15U) >> 54U;
    while (table_[at % kTable] != 0 && table_[at % kTable] != wanted) {
      ++at;
    }
    return &table_[at % kTable];
  }
  std::uint64_t table_[kTable] = {};
};

/// True if the pair is finished.
bool look_at(wire::Ring& ring, Tracked& one, Context& current) {
  if (current != one.context) {
    driver.make_current(one.context);  // an existing context; none is created
    current = one.context;
  }
  const int after = driver.query(one.after);
  if (after == kGone) {
    readiness.store(kOff, std::memory_order_release);  // the process exits
    return false;
  }
  if (after != kNotReady) {
    const wire::Phase phase = after == kDone ? wire::Phase::kCompleted : wire::Phase::kFailed;
    each_span(one, [&](const Span& span) { call_ended(ring, span, phase); });
    pending.fetch_sub(1, std::memory_order_relaxed);
    give_back(one);
    return true;
  }
  if (!one.started && driver.query(one.before) == kDone) {
    one.started = true;
    each_span(one, [&](const Span& span) { call_ended(ring, span, wire::Phase::kStarted); });
  }
  return false;
}

/// Queries the oldest open launch of each stream, and later ones as long as they are complete; one
/// pass through the table. True if any was complete.
bool look_at_all(wire::Ring& ring, Context& current) {
  if (pending.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  bool moved = false;
  Blocked blocked;
  // Entries are reused in a cycle.
  const std::uint32_t oldest = next_slot.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < kTracked; ++i) {
    Tracked& one = tracked[(oldest + i) % kTracked];
    if (one.stage.load(std::memory_order_acquire) != kPending || blocked.contains(one)) {
      continue;
    }
    if (look_at(ring, one, current)) {
      moved = true;
    } else {
      blocked.add(one);
    }
  }
  return moved;
}

/// Records what the GPU finished since the watcher's last pass: the last calls of a job that
/// synchronizes and exits immediately must not look open.
void last_look(wire::Ring& ring) {
  int relaxed = 2;
  driver.exchange_mode(&relaxed);
  Context before = nullptr;
  driver.current(&before);
  Context current = before;
  while (look_at_all(ring, current)) {
  }
  if (current != before) {
    driver.make_current(before);
  }
  driver.exchange_mode(&relaxed);
}

/// Runs before CUDA's own exit handlers: the driver must not be queried during its shutdown.
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

/// When the current oldest unfinished call became the oldest.
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
  driver.exchange_mode(&relaxed);  // otherwise our queries would end the capture of another thread
  Context current = nullptr;
  Oldest oldest;
  while (readiness.load(std::memory_order_acquire) == kOn) {
    bool moved = false;
    asking.store(true, std::memory_order_seq_cst);
    wire::Ring* const ring_now = ring();
    if (ring_now != nullptr && readiness.load(std::memory_order_seq_cst) == kOn) {
      moved = look_at_all(*ring_now, current);
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

// glibc before 2.34 has these in libpthread, on which the agent does not depend.
constinit Real<int (*)(pthread_attr_t*, std::size_t)> real_attr_setstacksize{
    "pthread_attr_setstacksize"};
constinit Real<int (*)(pthread_t, const char*)> real_setname_np{"pthread_setname_np"};

void start_watcher() {
  int expected = 0;
  if (!watcher.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) {
    return;
  }
  const Inside inside;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // Signals are for the job's threads; glibc's own signals stay enabled.
  sigprocmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_t thread{};
  constexpr std::size_t kStack = 256 * 1024;
  bool made = pthread_attr_init(&attributes) == 0;
  if (made) {
    if (const auto limit = real_attr_setstacksize.get(); limit != nullptr) {
      limit(&attributes, kStack);
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    made = pthread_create(&thread, &attributes, watch, nullptr) == 0;
    pthread_attr_destroy(&attributes);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (!made) {
    readiness.store(kOff, std::memory_order_release);
    return;
  }
  if (const auto call_it = real_setname_np.get(); call_it != nullptr) {
    call_it(thread, "ddpdoctor");
  }
  on_exit(process_ends, nullptr);
}

/// Creates the pair's events unless it already has some in this context.
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

/// True if an event can be recorded after the launch here and now: not during a capture.
bool can_record(const Tracked& one, Stream stream) {
  Context context = nullptr;
  int capturing = 0;
  return driver.current(&context) == kDone && context == one.context &&
         driver.is_capturing(stream, &capturing) == kDone && capturing == 0;
}

}  // namespace

Pair begin_pair(Stream stream) {
  if (!driver_is_usable()) {
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
  Tracked* const one = take_entry();
  if (one == nullptr) {
    return {.begun = Begun::kFull};
  }
  if (!has_events(*one, context) || driver.record(one->before, stream) != kDone) {
    give_back(*one);
    return {};
  }
  return {.begun = Begun::kTracked, .slot = number_of(*one) - 1};
}

void add_to_pair(wire::Ring& ring, const Pair& pair, const Span& span) {
  if (pair.begun == Begun::kFull) {
    count_untracked(ring, span.calls());
  }
  if (pair.begun != Begun::kTracked) {
    return;
  }
  Tracked& leader = tracked[pair.slot];
  if (leader.span.group == 0) {
    leader.span = span;
    return;
  }
  Tracked* const follower = take_entry();
  if (follower == nullptr) {
    count_untracked(ring, span.calls());
    return;
  }
  follower->span = span;
  follower->stage.store(kFollowing, std::memory_order_release);
  (leader.tail == 0 ? leader : tracked[leader.tail - 1]).next = number_of(*follower);
  leader.tail = number_of(*follower);
}

void end_pair(wire::Ring& ring, const Pair& pair, Stream stream, bool later) {
  if (pair.begun != Begun::kTracked) {
    return;
  }
  Tracked& one = tracked[pair.slot];
  if (one.span.group == 0 || (later && !can_record(one, stream)) ||
      driver.record(one.after, stream) != kDone) {
    abandon_pair(ring, pair);
    return;
  }
  one.stream = stream;
  one.order = next_order.fetch_add(1, std::memory_order_relaxed);
  each_span(one, [&](const Span& span) { note(ring, span, wire::kTracked); });
  pending.fetch_add(1, std::memory_order_relaxed);
  one.stage.store(kPending, std::memory_order_release);
  if (watcher.load(std::memory_order_relaxed) == 0) {
    start_watcher();
  }
}

void drop_pair(const Pair& pair) {
  if (pair.begun == Begun::kTracked) {
    give_back(tracked[pair.slot]);
  }
}

void abandon_pair(wire::Ring& ring, const Pair& pair) {
  if (pair.begun == Begun::kTracked) {
    Tracked& one = tracked[pair.slot];
    each_span(one, [&](const Span& span) { count_untracked(ring, span.calls()); });
    give_back(one);
  }
}

void stop_watching() {
  watcher.store(0, std::memory_order_relaxed);
  asking.store(false, std::memory_order_relaxed);
  int expected = kOn;
  readiness.compare_exchange_strong(expected, kOff, std::memory_order_acq_rel);
}

}  // namespace ddpdoctor::agent::nccl
