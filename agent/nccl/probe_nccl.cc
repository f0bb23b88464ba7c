// SPDX-License-Identifier: Apache-2.0
// Collectives and messages of NCCL: what each passes on, and what is kept of it. Read it as a
// table.
#include "agent/nccl/nccl_calls.h"
#include "agent/nccl/nccl_probes.h"

namespace ddpdoctor::agent::nccl {
namespace {

using enum wire::Operation;

std::int64_t elements(Size count) {
  return static_cast<std::int64_t>(count);
}

}  // namespace

Result all_reduce(L library, In from, Out to, Size count, int type, int op, C communicator,
                  S stream) {
  Around around(library, {.operation = kAllReduce,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .reduce_op = op});
  return around.with(
      real<kncclAllReduce>(library, from, to, count, type, op, communicator, stream));
}

Result all_reduce_config(L library, In from, Out to, Size count, int type, int op, C communicator,
                         S stream, In config) {
  Around around(library, {.operation = kAllReduce,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .reduce_op = op});
  return around.with(
      real<kncclAllReduceConfig>(library, from, to, count, type, op, communicator, stream, config));
}

Result broadcast(L library, In from, Out to, Size count, int type, int root, C communicator,
                 S stream) {
  Around around(library, {.operation = kBroadcast,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .root = root});
  return around.with(
      real<kncclBroadcast>(library, from, to, count, type, root, communicator, stream));
}

Result broadcast_config(L library, In from, Out to, Size count, int type, int root, C communicator,
                        S stream, In config) {
  Around around(library, {.operation = kBroadcast,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .root = root});
  return around.with(real<kncclBroadcastConfig>(library, from, to, count, type, root, communicator,
                                                stream, config));
}

Result reduce(L library, In from, Out to, Size count, int type, int op, int root, C communicator,
              S stream) {
  Around around(library, {.operation = kReduce,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .reduce_op = op,
                          .root = root});
  return around.with(
      real<kncclReduce>(library, from, to, count, type, op, root, communicator, stream));
}

Result reduce_config(L library, In from, Out to, Size count, int type, int op, int root,
                     C communicator, S stream, In config) {
  Around around(library, {.operation = kReduce,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .reduce_op = op,
                          .root = root});
  return around.with(real<kncclReduceConfig>(library, from, to, count, type, op, root, communicator,
                                             stream, config));
}

Result all_gather(L library, In from, Out to, Size count, int type, C communicator, S stream) {
  Around around(library, {.operation = kAllGather,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type});
  return around.with(real<kncclAllGather>(library, from, to, count, type, communicator, stream));
}

Result all_gather_config(L library, In from, Out to, Size count, int type, C communicator, S stream,
                         In config) {
  Around around(library, {.operation = kAllGather,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type});
  return around.with(
      real<kncclAllGatherConfig>(library, from, to, count, type, communicator, stream, config));
}

Result reduce_scatter(L library, In from, Out to, Size count, int type, int op, C communicator,
                      S stream) {
  Around around(library, {.operation = kReduceScatter,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .reduce_op = op});
  return around.with(
      real<kncclReduceScatter>(library, from, to, count, type, op, communicator, stream));
}

Result reduce_scatter_config(L library, In from, Out to, Size count, int type, int op,
                             C communicator, S stream, In config) {
  Around around(library, {.operation = kReduceScatter,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .reduce_op = op});
  return around.with(real<kncclReduceScatterConfig>(library, from, to, count, type, op,
                                                    communicator, stream, config));
}

Result all_to_all(L library, In from, Out to, Size count, int type, C communicator, S stream) {
  Around around(library, {.operation = kAllToAll,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type});
  return around.with(real<kncclAlltoAll>(library, from, to, count, type, communicator, stream));
}

Result all_to_all_config(L library, In from, Out to, Size count, int type, C communicator, S stream,
                         In config) {
  Around around(library, {.operation = kAllToAll,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type});
  return around.with(
      real<kncclAlltoAllConfig>(library, from, to, count, type, communicator, stream, config));
}

Result gather(L library, In from, Out to, Size count, int type, int root, C communicator,
              S stream) {
  Around around(library, {.operation = kGather,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .root = root});
  return around.with(real<kncclGather>(library, from, to, count, type, root, communicator, stream));
}

Result gather_config(L library, In from, Out to, Size count, int type, int root, C communicator,
                     S stream, In config) {
  Around around(library, {.operation = kGather,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .root = root});
  return around.with(
      real<kncclGatherConfig>(library, from, to, count, type, root, communicator, stream, config));
}

Result scatter(L library, In from, Out to, Size count, int type, int root, C communicator,
               S stream) {
  Around around(library, {.operation = kScatter,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .root = root});
  return around.with(
      real<kncclScatter>(library, from, to, count, type, root, communicator, stream));
}

Result scatter_config(L library, In from, Out to, Size count, int type, int root, C communicator,
                      S stream, In config) {
  Around around(library, {.operation = kScatter,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .root = root});
  return around.with(
      real<kncclScatterConfig>(library, from, to, count, type, root, communicator, stream, config));
}

Result broadcast_in_place(L library, Out buffer, Size count, int type, int root, C communicator,
                          S stream) {
  Around around(library, {.operation = kBroadcast,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .root = root});
  return around.with(real<kncclBcast>(library, buffer, count, type, root, communicator, stream));
}

Result all_to_all_rccl(L library, In from, Out to, Size count, int type, C communicator, S stream) {
  Around around(library, {.operation = kAllToAll,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type});
  return around.with(real<kncclAllToAll>(library, from, to, count, type, communicator, stream));
}

Result all_to_all_v(L library, In from, In send_counts, In send_places, Out to, In receive_counts,
                    In receive_places, int type, C communicator, S stream) {
  Around around(
      library,
      {.operation = kAllToAll, .communicator = communicator, .stream = stream, .type = type});
  return around.with(real<kncclAllToAllv>(library, from, send_counts, send_places, to,
                                          receive_counts, receive_places, type, communicator,
                                          stream));
}

Result all_to_all_v_nccl(L library, In from, In send_counts, In send_places, Out to,
                         In receive_counts, In receive_places, int type, C communicator, S stream) {
  Around around(
      library,
      {.operation = kAllToAll, .communicator = communicator, .stream = stream, .type = type});
  return around.with(real<kncclAlltoAllv>(library, from, send_counts, send_places, to,
                                          receive_counts, receive_places, type, communicator,
                                          stream));
}

Result all_reduce_with_bias(L library, In from, Out to, Size count, int type, int op,
                            C communicator, S stream, In bias) {
  Around around(library, {.operation = kAllReduce,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .reduce_op = op});
  return around.with(
      real<kncclAllReduceWithBias>(library, from, to, count, type, op, communicator, stream, bias));
}

Result send(L library, In from, Size count, int type, int peer, C communicator, S stream) {
  Around around(library, {.operation = kSend,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .root = peer});
  return around.with(real<kncclSend>(library, from, count, type, peer, communicator, stream));
}

Result receive(L library, Out to, Size count, int type, int peer, C communicator, S stream) {
  Around around(library, {.operation = kRecv,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .root = peer});
  return around.with(real<kncclRecv>(library, to, count, type, peer, communicator, stream));
}

Result put_signal(L library, In from, Size count, int type, int peer, Out window, Size offset,
                  int number, int context, unsigned flags, C communicator, S stream) {
  Around around(library, {.operation = kPutSignal,
                          .communicator = communicator,
                          .stream = stream,
                          .count = elements(count),
                          .type = type,
                          .root = peer});
  return around.with(real<kncclPutSignal>(library, from, count, type, peer, window, offset, number,
                                          context, flags, communicator, stream));
}

Result signal(L library, int peer, int number, int context, unsigned flags, C communicator,
              S stream) {
  Around around(
      library,
      {.operation = kSignal, .communicator = communicator, .stream = stream, .root = peer});
  return around.with(
      real<kncclSignal>(library, peer, number, context, flags, communicator, stream));
}

Result wait_signal(L library, int count, Out descriptions, C communicator, S stream) {
  Around around(
      library,
      {.operation = kWaitSignal, .communicator = communicator, .stream = stream, .count = count});
  return around.with(real<kncclWaitSignal>(library, count, descriptions, communicator, stream));
}

Result group_start(L library) {
  const Result result = real<kncclGroupStart>(library);
  if (result == kSuccess && !is_nested()) {
    group_started();
  }
  return result;
}

/// It may wait for other ranks itself: the first use of a connection, an init inside the group.
Result group_end(L library) {
  const bool ours = !is_nested();
  if (ours) {
    group_ends();
  }
  const Result result = real<kncclGroupEnd>(library);
  if (ours) {
    group_ended(result);
  }
  return result;
}

/// Ends the group without running it.
Result group_simulate_end(L library, Out information) {
  const Result result = real<kncclGroupSimulateEnd>(library, information);
  if (!is_nested()) {
    group_ended(kInternalError);
  }
  return result;
}

}  // namespace ddpdoctor::agent::nccl
