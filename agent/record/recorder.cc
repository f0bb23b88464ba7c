// SPDX-License-Identifier: Apache-2.0
#include "agent/record/recorder.h"

#include <atomic>
#include <cstring>
#include <ctime>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/inside.h"
#include "agent/process_state.h"
#include "agent/record/ring_file.h"

namespace ddpdoctor::agent {

constinit thread_local int inside_depth = 0;

namespace {

enum State : int { kAbsent, kMaking, kReady, kOff };

constinit thread_local std::uint32_t cached_tid = 0;
char spool[512];
bool spool_chosen = false;
bool wipe_by_hand = false;

// Texts already in the pool, by hash; open addressing. If the table is full, texts are only stored
// repeatedly.
constexpr std::uint32_t kTextSlots = 8192;
struct TextSlot {
  std::atomic<std::uint64_t> hash;
  std::atomic<std::uint32_t> offset;
};

/// Data that a forked child must not inherit.
struct alignas(kPage) OfThisProcess {
  std::atomic<wire::Ring*> current;
  std::atomic<int> state;
  std::atomic<std::uint64_t> lost_before;
  TextSlot texts[kTextSlots];
};
constinit OfThisProcess own{};

std::uint64_t hash_of(const char* text, std::size_t length) {
  std::uint64_t hash = 14695981039346656037U;
  for (std::size_t i = 0; i < length; ++i) {
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 1099511628211U;
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace

namespace {

std::uint64_t clock_time() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

#if defined(__aarch64__)
/// The machine's counter: 25 to 1,000 million per second.
std::uint64_t counter() {
  std::uint64_t value = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
}
constexpr std::uint64_t kSpan = 1U << 18U;  // 0.3 to 10 milliseconds
#else
std::uint64_t counter() {
  return __builtin_ia32_rdtsc();
}
constexpr std::uint64_t kSpan = 1U << 20U;  // a third of a millisecond
#endif

/// Between two readings of the clock, at most kSpan cycles apart, the cycle counter gives the time:
/// several times faster, with an error below the clock's own jitter. Each thread has its own.
struct Cycles {
  std::uint64_t at;    // counter at the reading
  std::uint64_t time;  // the reading
  std::uint64_t rate;  // nanoseconds per cycle, 32 fractional bits; 0 = unknown
  std::uint64_t good;  // number of cycles for which the rate is valid
};
constinit thread_local Cycles cycles{};
constexpr std::uint64_t kShortest = kSpan / 2;  // a shorter interval gives no rate
constexpr std::uint64_t kLongest = std::uint64_t{1} << 31U;
constexpr std::uint64_t kUndisturbed = 400;  // longest reading in cycles
constexpr std::uint64_t kAgree = 2048;       // two rates differ by less than 1 / kAgree

/// Reads the clock; learns the counter's rate when two consecutive measurements agree.
__attribute__((noinline)) std::uint64_t read_clock() {
  const std::uint64_t before = counter();
  const std::uint64_t time = clock_time();
  const std::uint64_t after = counter();
  const Cycles last = cycles;
  const std::uint64_t middle = before + (after - before) / 2;
  const std::uint64_t passed = middle - last.at;
  const bool disturbed = after - before > kUndisturbed;
  if (!disturbed && last.at != 0 && passed < kShortest) {
    return time;  // too soon to learn the rate: keeps the older reading
  }
  Cycles next{.at = disturbed ? 0 : middle, .time = time, .rate = last.rate, .good = 0};
  if (!disturbed && last.at != 0 && passed < kLongest && time > last.time) {
    next.rate = ((time - last.time) << 32U) / passed;
    const std::uint64_t apart =
        next.rate > last.rate ? next.rate - last.rate : last.rate - next.rate;
    next.good = apart < next.rate / kAgree ? kSpan : 0;
  }
  cycles = next;
  return time;
}

}  // namespace

std::uint64_t now() {
  const Cycles& known = cycles;
  const std::uint64_t passed = counter() - known.at;
  return passed < known.good ? known.time + ((passed * known.rate) >> 32U) : read_clock();
}

std::uint32_t thread_id() {
  if (cached_tid == 0) {
    cached_tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  }
  return cached_tid;
}

void choose_spool(const char* folder) {
  const std::size_t length = strlen(folder);
  if (length > 0 && length < sizeof spool - 64 && folder[0] == '/') {
    memcpy(spool, folder, length + 1);
    spool_chosen = true;
  }
}

namespace {
/// Records a call that got no descriptor when there was no ring.
void tell_earlier_failure(wire::Ring& ring) {
  const char* const call = process_state().no_descriptor_for;
  if (call != nullptr) {
    process_state().no_descriptor_for = nullptr;
    record(ring, {.kind = wire::EventKind::kDescriptorsFull,
                  .peer = EMFILE,
                  .text = intern(ring, call, strlen(call))});
  }
}
}  // namespace

wire::Ring* ring() {
  return own.current.load(std::memory_order_acquire);
}

wire::Ring* ring_or_make() {
  if (wire::Ring* const made = ring(); made != nullptr) {
    return made;
  }
  if (!spool_chosen) {
    return nullptr;
  }
  if (process_state().pid != static_cast<std::uint32_t>(getpid())) {
    become_a_child();  // a bare clone runs no fork handlers
  }
  int expected = kAbsent;
  if (!own.state.compare_exchange_strong(expected, kMaking, std::memory_order_acq_rel)) {
    // Another thread is making it right now.
    own.lost_before.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  wire::Ring* const made = make_ring_file(spool);
  if (made == nullptr) {
    own.state.store(kOff, std::memory_order_release);
    return nullptr;
  }
  wipe_by_hand = !forget_in_children(&own, sizeof own);
  made->header.lost.fetch_add(own.lost_before.load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
  own.current.store(made, std::memory_order_release);
  own.state.store(kReady, std::memory_order_release);
  tell_earlier_failure(*made);
  return made;
}

std::int32_t rank_in_ring_of(pid_t pid, std::uint64_t start_ticks) {
  return spool_chosen ? rank_in_ring_file(spool, pid, start_ticks) : -1;
}

bool forget_in_children(void* pages, std::size_t bytes) {
  return madvise(pages, bytes, MADV_WIPEONFORK) == 0;
}

void forget_ring() {
  cached_tid = 0;
  if (own.state.load(std::memory_order_relaxed) == kAbsent) {
    return;  // there was none, or the kernel has cleared the pages
  }
  own.current.store(nullptr, std::memory_order_relaxed);
  own.state.store(kAbsent, std::memory_order_relaxed);
  own.lost_before.store(0, std::memory_order_relaxed);
  if (wipe_by_hand) {
    memset(static_cast<void*>(own.texts), 0, sizeof own.texts);
  }
}

std::uint64_t record(wire::Ring& ring, const Event& event) {
  const std::uint64_t index = ring.header.head.fetch_add(1, std::memory_order_relaxed);
  wire::Slot& slot = ring.slot[index % wire::kSlots];
  slot.sequence.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.time = now();
  slot.tid = thread_id();
  slot.kind = static_cast<std::uint16_t>(event.kind);
  slot.phase = static_cast<std::uint8_t>(event.phase);
  slot.operation = static_cast<std::uint8_t>(event.operation);
  slot.site = event.site;
  slot.group = event.group;
  slot.dtype = event.dtype;
  slot.reduce_op = event.reduce_op;
  slot.object = event.object;
  slot.count = event.count;
  slot.group_sequence = event.group_sequence;
  slot.peer = event.peer;
  slot.text = event.text;
  slot.detail = event.detail;
  slot.sequence.store(index + 1, std::memory_order_release);
  return index + 1;
}

std::uint32_t intern(wire::Ring& ring, const char* text, std::size_t length) {
  constexpr std::size_t kLongest = 1024;
  if (length > kLongest) {
    text += length - kLongest;  // the end of a path is more informative than its beginning
    length = kLongest;
  }
  const std::uint64_t hash = hash_of(text, length);
  TextSlot* free_slot = nullptr;
  for (std::uint32_t i = 0; i < 32; ++i) {
    TextSlot& slot = own.texts[(hash + i) % kTextSlots];
    const std::uint64_t seen = slot.hash.load(std::memory_order_acquire);
    if (seen == hash) {
      // 0 while it is being written: the text is then unknown, never wrong.
      return slot.offset.load(std::memory_order_acquire);
    }
    if (seen == 0) {
      free_slot = &slot;
      break;
    }
  }
  const auto bytes = static_cast<std::uint32_t>(length + 1);
  const std::uint32_t offset = ring.header.text_used.fetch_add(bytes, std::memory_order_relaxed);
  if (offset + bytes > wire::kTextBytes || offset + bytes < offset) {
    ring.header.text_used.store(wire::kTextBytes, std::memory_order_relaxed);
    return 0;
  }
  memcpy(ring.text + offset, text, length);
  ring.text[offset + length] = 0;
  std::uint64_t expected = 0;
  if (free_slot != nullptr &&
      free_slot->hash.compare_exchange_strong(expected, hash, std::memory_order_acq_rel)) {
    free_slot->offset.store(offset, std::memory_order_release);
  }
  return offset;
}

void keep_stderr(wire::Ring& ring, const char* text, std::size_t length) {
  if (length > wire::kStderrBytes) {
    text += length - wire::kStderrBytes;
    length = wire::kStderrBytes;
  }
  const std::uint32_t at = ring.header.stderr_head.fetch_add(static_cast<std::uint32_t>(length),
                                                             std::memory_order_relaxed) %
                           wire::kStderrBytes;
  const std::size_t first = length < wire::kStderrBytes - at ? length : wire::kStderrBytes - at;
  memcpy(ring.standard_error + at, text, first);
  memcpy(ring.standard_error, text + first, length - first);
}

}  // namespace ddpdoctor::agent
