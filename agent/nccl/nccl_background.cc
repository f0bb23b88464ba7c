// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl/nccl_background.h"

#include <atomic>
#include <unistd.h>

#include <sys/uio.h>

#include "agent/inside.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent::nccl {
namespace {

enum Stage : std::uint32_t { kFree, kFilling, kReady };
struct Entry {
  std::atomic<std::uint32_t> stage;
  std::uint64_t batch;
  std::uint32_t thread;
  Going going;
};
constexpr int kEntries = 128;
constinit Entry table[kEntries]{};
constinit std::atomic<std::uint32_t> used{0};
constinit std::atomic<std::uint64_t> batches{0};

bool is_asked_of(const Entry& entry, Communicator communicator, std::uint64_t asked) {
  return entry.stage.load(std::memory_order_acquire) == kReady && entry.batch <= asked &&
         (entry.going.asked == communicator || entry.going.parent == communicator);
}

/// The handle of a child is in the caller's variable, which may no longer exist: only the calling
/// thread may be queried, and the kernel does the read.
void settle_child(wire::Ring& ring, const Entry& entry) {
  Child child = entry.going.child;
  if (child.made == nullptr || entry.thread != thread_id()) {
    return;
  }
  Communicator handle = nullptr;
  const iovec to{.iov_base = static_cast<void*>(&handle), .iov_len = sizeof handle};
  const iovec from{.iov_base = const_cast<Communicator*>(child.made), .iov_len = sizeof handle};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof handle) {
    child.made = &handle;
    arrive(ring, child, false);
  }
}

/// Rank and size of a communicator that is no longer in progress.
bool ask(const Library& library, Communicator handle, bool ready, int& rank, int& size) {
  Result state = kInProgress;
  if (!ready && library.function[kncclCommGetAsyncError] != nullptr &&
      real<kncclCommGetAsyncError>(library, handle, &state) == kSuccess) {
    ready = state == kSuccess;
  }
  return ready && library.rank != nullptr && library.count != nullptr &&
         library.rank(handle, &rank) == kSuccess && library.count(handle, &size) == kSuccess;
}

void settle(wire::Ring& ring, const Entry& entry, Result state) {
  const Going& going = entry.going;
  if (state != kSuccess) {
    if (going.ends_pair) {
      drop_pair(going.pair);
    }
    note(ring, going.span, going.on_stream ? wire::kTracked : 0U, wire::kInProgress);
    call_ended(ring, going.span, wire::Phase::kFailed);
    return;
  }
  settle_child(ring, entry);
  if (going.ends_pair) {
    end_pair(ring, going.pair, going.stream, true);
  }
  note(ring, going.span, 0, wire::kInProgress);
  if (!going.on_stream) {
    call_ended(ring, going.span, wire::Phase::kCompleted);
  }
}

}  // namespace

bool arrive(wire::Ring& ring, const Child& child, bool ready) {
  if (child.made == nullptr || *child.made == nullptr) {
    return false;
  }
  const Communicator handle = *child.made;
  std::uint16_t group = child.group;
  int rank = child.rank;
  int size = child.size;
  if (group == 0) {
    if (!ask(*child.library, handle, ready, rank, size)) {
      rank = -1;
      size = -1;
    }
    group = new_group(ring, *child.library, child.id, rank, size);
  }
  Known* const known = remember(ring, handle, child.id, group, rank, size);
  if (known != nullptr) {
    known->magic = child.magic;
  }
  return true;
}

Batch::Batch() : number_(batches.fetch_add(1, std::memory_order_acq_rel) + 1) {}

void Batch::add(wire::Ring& ring, const Going& going) {
  if (going.asked == nullptr) {
    note(ring, going.span, wire::kInProgress);  // and stays so, because there is no handle to query
    return;
  }
  for (Entry& entry : table) {
    std::uint32_t expected = kFree;
    if (!entry.stage.compare_exchange_strong(expected, kFilling, std::memory_order_acq_rel)) {
      continue;
    }
    entry.batch = number_;
    entry.thread = thread_id();
    entry.going = going;
    note(ring, going.span, wire::kInProgress);
    used.fetch_add(1, std::memory_order_relaxed);
    entry.stage.store(kReady, std::memory_order_release);
    return;
  }
  if (going.ends_pair) {
    abandon_pair(ring, going.pair);
  } else if (!going.on_stream) {
    count_untracked(ring, going.span.calls());
  }
}

std::uint64_t asked_now() {
  return batches.load(std::memory_order_acquire);
}

void answered(wire::Ring& ring, Communicator communicator, Result state, std::uint64_t asked) {
  if (state == kInProgress || communicator == nullptr ||
      used.load(std::memory_order_acquire) == 0) {
    return;
  }
  const Inside inside;
  constexpr int kMost = 16;
  std::uint64_t batch[kMost];
  int count = 0;
  for (const Entry& entry : table) {
    if (count < kMost && is_asked_of(entry, communicator, asked)) {
      batch[count++] = entry.batch;
    }
  }
  for (Entry& entry : table) {
    bool meant = false;
    for (int i = 0; i < count; ++i) {
      meant = meant || batch[i] == entry.batch;
    }
    std::uint32_t expected = kReady;
    if (meant &&
        entry.stage.compare_exchange_strong(expected, kFilling, std::memory_order_acq_rel)) {
      settle(ring, entry, state);
      used.fetch_sub(1, std::memory_order_relaxed);
      entry.stage.store(kFree, std::memory_order_release);
    }
  }
}

void still_in_progress(wire::Ring& ring, Communicator communicator) {
  if (communicator == nullptr || used.load(std::memory_order_acquire) == 0) {
    return;
  }
  const std::uint32_t thread = thread_id();
  for (const Entry& entry : table) {
    const std::uint32_t group = entry.going.span.group;
    if (is_asked_of(entry, communicator, UINT64_MAX) && entry.thread == thread && group > 0 &&
        group <= wire::kGroups) {
      wire::Group& asked = ring.group[group - 1];
      std::atomic_ref(asked.asked_tid).store(thread, std::memory_order_relaxed);
      std::atomic_ref(asked.asked_time).store(now(), std::memory_order_relaxed);
    }
  }
}

void forget_background() {
  for (Entry& entry : table) {
    entry.stage.store(kFree, std::memory_order_relaxed);
  }
  used.store(0, std::memory_order_relaxed);
}

}  // namespace ddpdoctor::agent::nccl
