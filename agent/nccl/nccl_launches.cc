// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl/nccl_launches.h"

#include <atomic>

#include "agent/inside.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent::nccl {
namespace {

/// Consecutive calls of one communicator on one stream.
constexpr int kHeld = 96;
constexpr int kHosted = 16;
constexpr int kStreams = 8;
struct OpenGroup {
  int depth = 0;
  int held_count = 0;
  int hosted_count = 0;
  int streams = 0;
  Launched held[kHeld];
  Hosted hosted[kHosted];
  Stream stream[kStreams];
  Pair pair[kStreams];
};
constinit thread_local OpenGroup open_group{};

constinit std::atomic<std::uint32_t> captured_calls{0};

void note_captured(wire::Ring& ring, const Span& span) {
  note(ring, span, wire::kCaptured);
  captured_calls.fetch_add(span.calls(), std::memory_order_relaxed);
}

void failed(wire::Ring& ring, const Span& span) {
  note(ring, span, wire::kTracked);
  call_ended(ring, span, wire::Phase::kFailed);
}

bool is_accepted(Result result) {
  return result == kSuccess || result == kInProgress;
}

void end_host_call(wire::Ring& ring, const Hosted& call, Result result, Batch* batch) {
  const bool made = is_accepted(result) && arrive(ring, call.child, result == kSuccess);
  if (batch == nullptr) {
    call_ended(ring, call.span,
               result == kSuccess ? wire::Phase::kCompleted : wire::Phase::kFailed);
    return;
  }
  const bool awaits_child = call.child.made != nullptr && !made;
  batch->add(ring, {.asked = made ? *call.child.made : call.communicator,
                    .parent = call.communicator,
                    .span = call.span,
                    .child = awaits_child ? call.child : Child{}});
}

}  // namespace

void launch_ended(wire::Ring& ring, const Launched& call, const Pair& pair, Result result) {
  if (!is_accepted(result)) {
    drop_pair(pair);
    failed(ring, call.span);
    return;
  }
  if (pair.begun == Begun::kCaptured) {
    note_captured(ring, call.span);
    return;
  }
  add_to_pair(ring, pair, call.span);
  if (result == kSuccess) {
    end_pair(ring, pair, call.stream);
    return;
  }
  Batch().add(ring, {.asked = call.communicator,
                     .span = call.span,
                     .on_stream = true,
                     .pair = pair,
                     .ends_pair = true,
                     .stream = call.stream});
}

void host_call_ended(wire::Ring& ring, const Hosted& call, Result result) {
  if (result == kInProgress) {
    Batch batch;
    end_host_call(ring, call, result, &batch);
  } else {
    end_host_call(ring, call, result, nullptr);
  }
}

bool group_is_open() {
  return open_group.depth > 0;
}

void hold(wire::Ring& ring, const Launched& call) {
  constexpr int kBack = 8;  // a group may alternate between several communicators
  for (int i = open_group.held_count - 1; i >= 0 && i >= open_group.held_count - kBack; --i) {
    Launched& held = open_group.held[i];
    if (held.communicator == call.communicator && held.stream == call.stream &&
        append(held.span, call.span)) {
      return;
    }
  }
  if (open_group.held_count < kHeld) {
    open_group.held[open_group.held_count++] = call;
  } else {
    count_untracked(ring, call.span.calls());
  }
}

void hold(wire::Ring& ring, const Hosted& call) {
  if (open_group.hosted_count < kHosted) {
    open_group.hosted[open_group.hosted_count++] = call;
  } else {
    count_untracked(ring, call.span.calls());
  }
}

void group_started() {
  ++open_group.depth;
}

void group_ends() {
  if (open_group.depth != 1) {
    return;
  }
  const Inside inside;
  open_group.streams = 0;
  for (int i = 0; i < open_group.held_count; ++i) {
    const Stream stream = open_group.held[i].stream;
    bool known = false;
    for (int k = 0; k < open_group.streams; ++k) {
      known = known || open_group.stream[k] == stream;
    }
    if (!known && open_group.streams < kStreams) {
      open_group.stream[open_group.streams] = stream;
      open_group.pair[open_group.streams++] = begin_pair(stream);
    }
  }
}

namespace {

/// The pair of a stream in the group; a pair marked kFull if there are too many streams.
Pair pair_of(Stream stream) {
  for (int i = 0; i < open_group.streams; ++i) {
    if (open_group.stream[i] == stream) {
      return open_group.pair[i];
    }
  }
  return {.begun = Begun::kFull};
}

/// Every call is in its pair before the first pair can end.
void launches_of_group_ended(wire::Ring& ring, Batch* batch) {
  for (int i = 0; i < open_group.held_count; ++i) {
    const Launched& call = open_group.held[i];
    const Pair pair = pair_of(call.stream);
    if (pair.begun == Begun::kCaptured) {
      note_captured(ring, call.span);
    } else {
      add_to_pair(ring, pair, call.span);
    }
  }
  for (int i = 0; i < open_group.streams; ++i) {
    const Pair pair = open_group.pair[i];
    if (pair.begun == Begun::kCaptured) {
      continue;
    }
    if (batch == nullptr) {
      end_pair(ring, pair, open_group.stream[i]);
      continue;
    }
    bool first = true;
    for (int k = 0; k < open_group.held_count; ++k) {
      const Launched& call = open_group.held[k];
      if (call.stream == open_group.stream[i]) {
        batch->add(ring, {.asked = call.communicator,
                          .span = call.span,
                          .on_stream = true,
                          .pair = pair,
                          .ends_pair = first,
                          .stream = call.stream});
        first = false;
      }
    }
  }
}

void calls_of_group_ended(wire::Ring& ring, Result result, Batch* batch) {
  if (is_accepted(result)) {
    launches_of_group_ended(ring, batch);
  } else {
    for (int i = 0; i < open_group.streams; ++i) {
      drop_pair(open_group.pair[i]);
    }
    for (int i = 0; i < open_group.held_count; ++i) {
      failed(ring, open_group.held[i].span);
    }
  }
  for (int i = 0; i < open_group.hosted_count; ++i) {
    end_host_call(ring, open_group.hosted[i], result, batch);
  }
}

}  // namespace

void group_ended(Result result) {
  if (open_group.depth == 0 || --open_group.depth > 0) {
    return;
  }
  const Inside inside;
  wire::Ring* const ring_now = ring();
  if (ring_now != nullptr && result == kInProgress) {
    Batch batch;
    calls_of_group_ended(*ring_now, result, &batch);
  } else if (ring_now != nullptr) {
    calls_of_group_ended(*ring_now, result, nullptr);
  }
  open_group.held_count = 0;
  open_group.hosted_count = 0;
  open_group.streams = 0;
}

std::uint32_t take_captured() {
  return captured_calls.exchange(0, std::memory_order_relaxed);
}

}  // namespace ddpdoctor::agent::nccl
