// SPDX-License-Identifier: Apache-2.0
// Records an MPI call: operation, communicator, counts, type, reduce operation, root or peer and
// tag, begin and end; for a wait, the open calls that it waits for.
#include "agent/mpi/mpi_record.h"

#include <atomic>
#include <cstring>

#include "agent/inside.h"
#include "agent/mpi/mpi_end.h"
#include "agent/record/group_table.h"
#include "agent/record/native_site.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

constinit thread_local OpenMpiCall open_call{};

std::int32_t integer(Word argument) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(argument));
}

std::int32_t integer_at(Word address) {
  return *reinterpret_cast<const std::int32_t*>(address);
}

bool is_point_to_point(MpiKind kind) {
  return kind == MpiKind::kPointToPoint || kind == MpiKind::kPointToPointStart ||
         kind == MpiKind::kPersistent;
}

/// A tag is in the upper 24 bits of detail, plus one; larger tags are omitted.
std::uint32_t tag_detail(std::int32_t tag) {
  constexpr std::int32_t kLargest = (1 << 24) - 2;
  return tag < 0 || tag > kLargest ? 0 : static_cast<std::uint32_t>(tag + 1) << wire::kTagShift;
}

void read_data(const MpiLibrary& library, const MpiCall& call, bool large, const Word* arguments,
               Event& event) {
  const bool in_place = call.place >= 0 && arguments[call.place] == library.in_place;
  const int count = in_place ? call.other_count : call.count;
  const int dtype = in_place ? call.other_dtype : call.dtype;
  if (dtype >= 0) {
    event.dtype = mpi_dtype(mpi_handle(library, arguments[dtype]));
  }
  // a count of an unknown type is meaningless: types with other layouts may carry the same data
  if (count >= 0 && event.dtype != 255) {
    event.count = large ? static_cast<std::int64_t>(arguments[count]) : integer(arguments[count]);
  }
  if (call.reduce_op >= 0) {
    event.reduce_op = mpi_reduce_op(mpi_handle(library, arguments[call.reduce_op]));
  }
  if (call.peer >= 0) {
    event.peer = integer(arguments[call.peer]);
    event.peer = event.peer < 0 ? -1 : event.peer;
  }
  if (call.tag >= 0) {
    event.detail |= tag_detail(integer(arguments[call.tag]));
  }
}

MpiKey publish(wire::Ring& ring, Event& event, std::uint16_t index, bool peer) {
  wire::Group& group = ring.group[index - 1];
  event.kind = peer ? wire::EventKind::kPointToPoint : wire::EventKind::kCollective;
  event.group = index;
  event.group_sequence = std::atomic_ref(peer ? group.point_to_point : group.enqueued)
                             .fetch_add(1, std::memory_order_relaxed) +
                         1;
  const std::uint64_t number = record(ring, event);
  memcpy(static_cast<void*>(&group.last),
         static_cast<const void*>(&ring.slot[(number - 1) % wire::kSlots]), sizeof group.last);
  group.last_enqueued_time = group.last.time;
  ring.header.collectives.fetch_add(1, std::memory_order_relaxed);
  return {.group = index,
          .point_to_point = peer,
          .sequence = event.group_sequence,
          .operation = event.operation};
}

/// Index of a communicator's group. Calls on a communicator whose creation was not seen are not
/// recorded; MPI_COMM_SELF never waits for another rank.
std::uint16_t group_of(wire::Ring& ring, const MpiLibrary& library, Word communicator) {
  const std::uint16_t index = known_group(ring, communicator);
  if (index == 0 && communicator != library.self && communicator != library.null_communicator) {
    ring.header.lost.fetch_add(1, std::memory_order_relaxed);
  }
  return index;
}

std::uint32_t site_of(wire::Ring& ring, const void* caller) {
  const std::uint32_t python = call_site(ring);
  return python != 0 ? python : native_site(ring, caller);
}

MpiKey begin(wire::Ring& ring, const MpiLibrary& library, const MpiCall& call, bool large,
             const Word* arguments, const void* caller) {
  const std::uint16_t index =
      group_of(ring, library, mpi_handle(library, arguments[call.communicator]));
  if (index == 0) {
    return {};
  }
  Event event{.operation = call.operation};
  if (call.kind != MpiKind::kNewCommunicator) {
    read_data(library, call, large, arguments, event);
  }
  const bool later = call.kind == MpiKind::kNonblocking || call.kind == MpiKind::kPointToPointStart;
  event.detail |= later ? wire::kAsync : 0;
  event.site = site_of(ring, caller);
  return publish(ring, event, index, is_point_to_point(call.kind));
}

/// MPI_*_init of a persistent send or receive: recorded when it is started.
void keep_template(const MpiLibrary& library, const MpiCall& call, bool large,
                   const Word* arguments) {
  Event event;
  read_data(library, call, large, arguments, event);
  keep_mpi_template({.request = mpi_handle_at(library, arguments[call.request], 0),
                     .communicator = mpi_handle(library, arguments[call.communicator]),
                     .operation = call.operation,
                     .count = event.count,
                     .dtype = event.dtype,
                     .peer = event.peer,
                     .detail = event.detail});
}

void start(wire::Ring& ring, const MpiLibrary& library, Word request, std::uint32_t site) {
  const MpiTemplate* const one = mpi_template(request);
  const std::uint16_t index =
      one == nullptr ? std::uint16_t{0} : group_of(ring, library, one->communicator);
  if (index == 0) {
    return;
  }
  Event event{.operation = one->operation,
              .site = site,
              .dtype = one->dtype,
              .count = one->count,
              .peer = one->peer,
              .detail = one->detail | wire::kAsync};
  remember_mpi_request(ring, request, publish(ring, event, index, true));
}

void take_requests(const MpiLibrary& library, const MpiCall& call, const Word* arguments,
                   MpiFrame& frame) {
  const std::int32_t count = call.count < 0 ? 1 : integer(arguments[call.count]);
  const Word address = arguments[call.request];
  if (address == 0 || count <= 0) {
    return;
  }
  frame.requests = static_cast<std::uint32_t>(count) < MpiFrame::kMost
                       ? static_cast<std::uint32_t>(count)
                       : MpiFrame::kMost;
  for (std::uint32_t i = 0; i < frame.requests; ++i) {
    frame.request[i] = mpi_handle_at(library, address, i);
  }
}

/// A wait begins: its calls are those that this rank is in.
void mark_waited(wire::Ring& ring, const MpiFrame& frame) {
  constexpr int kMarkedAtMost = 8;
  int marked = 0;
  for (std::uint32_t i = 0; i < frame.requests && marked < kMarkedAtMost; ++i) {
    const MpiKey key = mpi_request(ring, frame.request[i]);
    if (key.group != 0) {
      record(ring, {.kind = key.point_to_point ? wire::EventKind::kPointToPoint
                                               : wire::EventKind::kCollective,
                    .phase = wire::Phase::kStarted,
                    .operation = key.operation,
                    .group = key.group,
                    .group_sequence = key.sequence});
      ++marked;
    }
  }
}

void end_one(wire::Ring& ring, const MpiFrame& frame, std::int32_t index) {
  if (index >= 0 && static_cast<std::uint32_t>(index) < frame.requests) {
    mpi_request_ended(ring, frame.request[index]);
  }
}

void end_all(wire::Ring& ring, const MpiFrame& frame) {
  for (std::uint32_t i = 0; i < frame.requests; ++i) {
    mpi_request_ended(ring, frame.request[i]);
  }
}

void end_some(wire::Ring& ring, const MpiCall& call, const Word* arguments, const MpiFrame& frame) {
  const std::int32_t count = integer_at(arguments[call.peer]);
  for (std::int32_t i = 0; i < count; ++i) {
    end_one(ring, frame, integer_at(arguments[call.tag] + 4 * static_cast<Word>(i)));
  }
}

/// Which requests have completed after a successful wait or test.
void requests_ended(wire::Ring& ring, const MpiCall& call, const Word* arguments,
                    const MpiFrame& frame) {
  switch (call.kind) {
    case MpiKind::kWait:
    case MpiKind::kWaitall:
      end_all(ring, frame);
      break;
    case MpiKind::kTest:
    case MpiKind::kTestall:
      if (integer_at(arguments[call.peer]) != 0) {
        end_all(ring, frame);
      }
      break;
    case MpiKind::kWaitany:
      end_one(ring, frame, integer_at(arguments[call.peer]));
      break;
    case MpiKind::kTestany:
      if (integer_at(arguments[call.tag]) != 0) {
        end_one(ring, frame, integer_at(arguments[call.peer]));
      }
      break;
    default:
      end_some(ring, call, arguments, frame);
  }
}

void communicator_made(wire::Ring& ring, const MpiLibrary& library, const MpiCall& call,
                       const Word* arguments, std::uint32_t sequence) {
  const bool of_group = call.kind == MpiKind::kNewCommunicatorOfGroup;
  const std::uint32_t ordinal =
      of_group ? static_cast<std::uint32_t>(arguments[call.tag]) : sequence;
  if (of_group || sequence != 0) {
    mpi_communicator_made(ring, library, mpi_handle(library, arguments[call.communicator]),
                          mpi_handle_at(library, arguments[call.request], 0), of_group ? '/' : '.',
                          ordinal);
  }
}

void entered(wire::Ring& ring, const MpiLibrary& library, const MpiCall& call,
             const Word* arguments, const void* caller, MpiFrame& frame) {
  switch (call.kind) {
    case MpiKind::kCollective:
    case MpiKind::kNonblocking:
    case MpiKind::kPointToPoint:
    case MpiKind::kPointToPointStart:
    case MpiKind::kNewCommunicator:
      frame.key = begin(ring, library, call, frame.large, arguments, caller);
      break;
    case MpiKind::kStart:
    case MpiKind::kRequestFree:
    case MpiKind::kTest:
    case MpiKind::kTestall:
    case MpiKind::kTestany:
    case MpiKind::kTestsome:
      take_requests(library, call, arguments, frame);
      break;
    case MpiKind::kWait:
    case MpiKind::kWaitall:
    case MpiKind::kWaitany:
    case MpiKind::kWaitsome:
      take_requests(library, call, arguments, frame);
      mark_waited(ring, frame);
      break;
    case MpiKind::kCommFree:
      mpi_communicator_freed(ring, mpi_handle_at(library, arguments[call.request], 0));
      break;
    case MpiKind::kAbort:
      mpi_ends_process(ring, integer(arguments[1]));
      break;
    default:
      break;
  }
  if (call.kind == MpiKind::kStart) {
    const std::uint32_t site = site_of(ring, caller);
    for (std::uint32_t i = 0; i < frame.requests; ++i) {
      start(ring, library, frame.request[i], site);
    }
  }
}

void left(wire::Ring& ring, const MpiLibrary& library, const MpiCall& call, const Word* arguments,
          const MpiFrame& frame) {
  switch (call.kind) {
    case MpiKind::kCollective:
    case MpiKind::kPointToPoint:
      mpi_ended(ring, frame.key, false);
      break;
    case MpiKind::kNonblocking:
    case MpiKind::kPointToPointStart:
      if (frame.key.group != 0) {
        remember_mpi_request(ring, mpi_handle_at(library, arguments[call.request], 0), frame.key);
      }
      break;
    case MpiKind::kNewCommunicator:
      mpi_ended(ring, frame.key, false);
      communicator_made(ring, library, call, arguments, frame.key.sequence);
      break;
    case MpiKind::kNewCommunicatorOfGroup:
      communicator_made(ring, library, call, arguments, 0);
      break;
    case MpiKind::kPersistent:
      keep_template(library, call, frame.large, arguments);
      break;
    case MpiKind::kRequestFree:
      end_all(ring, frame);
      for (std::uint32_t i = 0; i < frame.requests; ++i) {
        drop_mpi_template(frame.request[i]);
      }
      break;
    case MpiKind::kInit:
      mpi_world_begins(ring, library);
      break;
    case MpiKind::kStart:
    case MpiKind::kCommFree:
    case MpiKind::kFinalize:
    case MpiKind::kAbort:
      break;
    default:
      requests_ended(ring, call, arguments, frame);
  }
}

/// A handler of the program, for errors or signals, gives up: the call site is that of the call.
void aborted_in_a_call(int id, const Word* arguments) {
  const Inside inside;
  open_call.id = id;
  if (wire::Ring* const ring_now = ring(); ring_now != nullptr) {
    mpi_ends_process(*ring_now, integer(arguments[1]));
  }
}

}  // namespace

OpenMpiCall open_mpi_call() {
  const int here = 0;
  return reinterpret_cast<std::uintptr_t>(&here) < open_call.frame ? open_call : OpenMpiCall{};
}

void mpi_entered(int id, bool large, const Word* arguments, const void* caller, MpiFrame& frame) {
  frame.large = large;
  const auto here = reinterpret_cast<std::uintptr_t>(&frame);
  frame.key = {};
  frame.requests = 0;
  frame.outermost = open_call.frame == 0 || here >= open_call.frame;
  if (!frame.outermost) {
    if (mpi_calls[id].kind == MpiKind::kAbort) {
      aborted_in_a_call(id, arguments);
    }
    return;
  }
  open_call = {.frame = here, .id = id, .caller = caller};
  const Inside inside;
  const MpiLibrary* const library = mpi_library();
  wire::Ring* const ring = library == nullptr ? nullptr : ring_or_make();
  if (ring != nullptr) {
    entered(*ring, *library, mpi_calls[id], arguments, caller, frame);
  }
}

void mpi_left(int id, const Word* arguments, MpiFrame& frame, int result) {
  if (!frame.outermost) {
    return;
  }
  open_call.frame = 0;
  const Inside inside;
  const MpiLibrary* const library = mpi_library();
  wire::Ring* const ring_now = library == nullptr ? nullptr : ring();
  if (ring_now == nullptr) {
    return;
  }
  if (result == 0) {
    left(*ring_now, *library, mpi_calls[id], arguments, frame);
  } else {
    mpi_ended(*ring_now, frame.key, true);
  }
}

}  // namespace ddpdoctor::agent
