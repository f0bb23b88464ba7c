// SPDX-License-Identifier: Apache-2.0
// The probes of nccl_functions.inc: the library to which the call is bound, then NCCL's arguments.
#pragma once

#include <cstddef>

#include "agent/nccl/nccl_calls.h"
#include "agent/nccl/nccl_library.h"

namespace ddpdoctor::agent::nccl {

using L = const Library&;
using C = Communicator;
using S = Stream;
using In = const void*;
using Out = void*;
using Size = std::size_t;

// Arguments to record are distinguished by type; NCCL receives their underlying types.
enum Count : std::size_t {};
enum Number : int {};  // a count that is an int
enum Type : int {};
enum ReduceOp : int {};
enum Root : int {};  // or the peer of a message

constexpr void keep(Call& call, C communicator) {
  call.communicator = communicator;
}
constexpr void keep(Call& call, S stream) {
  call.stream = stream;
}
constexpr void keep(Call& call, Count count) {
  call.count = static_cast<std::int64_t>(count);
}
constexpr void keep(Call& call, Number count) {
  call.count = count;
}
constexpr void keep(Call& call, Type type) {
  call.type = type;
}
constexpr void keep(Call& call, ReduceOp op) {
  call.reduce_op = op;
}
constexpr void keep(Call& call, Root root) {
  call.root = root;
}
template <typename Other>
constexpr void keep(Call&, Other) {}  // buffers, flags, configurations

/// Records a call on a stream as `operation` and calls the real function.
template <int kFunction, wire::Operation kOperation, typename... A>
[[gnu::noinline]] Result on_stream(L library, A... arguments) {
  Call call{.operation = kOperation};
  (keep(call, arguments), ...);
  Around around(library, call);
  return around.with(real<kFunction>(library, arguments...));
}

using enum wire::Operation;

// Collectives and messages. The variant with a configuration has one more argument.
constexpr auto all_reduce =
    on_stream<kncclAllReduce, kAllReduce, In, Out, Count, Type, ReduceOp, C, S>;
constexpr auto all_reduce_config =
    on_stream<kncclAllReduceConfig, kAllReduce, In, Out, Count, Type, ReduceOp, C, S, In>;
constexpr auto all_reduce_with_bias =
    on_stream<kncclAllReduceWithBias, kAllReduce, In, Out, Count, Type, ReduceOp, C, S, In>;
constexpr auto broadcast = on_stream<kncclBroadcast, kBroadcast, In, Out, Count, Type, Root, C, S>;
constexpr auto broadcast_config =
    on_stream<kncclBroadcastConfig, kBroadcast, In, Out, Count, Type, Root, C, S, In>;
constexpr auto broadcast_in_place = on_stream<kncclBcast, kBroadcast, Out, Count, Type, Root, C, S>;
constexpr auto reduce = on_stream<kncclReduce, kReduce, In, Out, Count, Type, ReduceOp, Root, C, S>;
constexpr auto reduce_config =
    on_stream<kncclReduceConfig, kReduce, In, Out, Count, Type, ReduceOp, Root, C, S, In>;
constexpr auto all_gather = on_stream<kncclAllGather, kAllGather, In, Out, Count, Type, C, S>;
constexpr auto all_gather_config =
    on_stream<kncclAllGatherConfig, kAllGather, In, Out, Count, Type, C, S, In>;
constexpr auto reduce_scatter =
    on_stream<kncclReduceScatter, kReduceScatter, In, Out, Count, Type, ReduceOp, C, S>;
constexpr auto reduce_scatter_config =
    on_stream<kncclReduceScatterConfig, kReduceScatter, In, Out, Count, Type, ReduceOp, C, S, In>;
constexpr auto all_to_all = on_stream<kncclAlltoAll, kAllToAll, In, Out, Count, Type, C, S>;
constexpr auto all_to_all_config =
    on_stream<kncclAlltoAllConfig, kAllToAll, In, Out, Count, Type, C, S, In>;
constexpr auto all_to_all_rccl = on_stream<kncclAllToAll, kAllToAll, In, Out, Count, Type, C, S>;
constexpr auto all_to_all_v =
    on_stream<kncclAllToAllv, kAllToAll, In, In, In, Out, In, In, Type, C, S>;
constexpr auto all_to_all_v_nccl =
    on_stream<kncclAlltoAllv, kAllToAll, In, In, In, Out, In, In, Type, C, S>;
constexpr auto gather = on_stream<kncclGather, kGather, In, Out, Count, Type, Root, C, S>;
constexpr auto gather_config =
    on_stream<kncclGatherConfig, kGather, In, Out, Count, Type, Root, C, S, In>;
constexpr auto scatter = on_stream<kncclScatter, kScatter, In, Out, Count, Type, Root, C, S>;
constexpr auto scatter_config =
    on_stream<kncclScatterConfig, kScatter, In, Out, Count, Type, Root, C, S, In>;
constexpr auto send = on_stream<kncclSend, kSend, In, Count, Type, Root, C, S>;
constexpr auto receive = on_stream<kncclRecv, kRecv, Out, Count, Type, Root, C, S>;
/// Window, offset, signal, context and flags are between peer and communicator.
constexpr auto put_signal = on_stream<kncclPutSignal, kPutSignal, In, Count, Type, Root, Out, Size,
                                      int, int, unsigned, C, S>;
constexpr auto signal = on_stream<kncclSignal, kSignal, Root, int, int, unsigned, C, S>;
constexpr auto wait_signal = on_stream<kncclWaitSignal, kWaitSignal, Number, Out, C, S>;

// All other functions are written out.
Result group_start(L);
Result group_end(L);
Result group_simulate_end(L, Out information);
Result get_unique_id(L, UniqueId* id);
Result communicator_get_unique_id(L, C, UniqueId* id);
Result init_rank(L, C* made, int size, UniqueId id, int rank);
Result init_rank_config(L, C* made, int size, UniqueId id, int rank, Out config);
Result init_rank_scalable(L, C* made, int size, int rank, int ids, const UniqueId* id, Out config);
Result init_all(L, C* made, int count, const int* devices);
Result split(L, C, int color, int key, C* made, Out config);
Result shrink(L, C, const int* excluded, int count, C* made, Out config, int flags);
Result grow(L, C, int size, const UniqueId* id, int rank, C* made, Out config);
Result suspend(L, C, int flags);
Result resume(L, C);
Result revoke(L, C, int flags);
Result finalize(L, C);
Result destroy(L, C);
Result abort_communicator(L, C);
Result get_async_error(L, C, Result* state);
Result create_reduce_op(L, int* op, Out scalar, int type, int residence, C);
Result destroy_reduce_op(L, int op, C);
Result window_register(L, C, Out buffer, Size size, Out* window, int flags);
Result window_deregister(L, C, Out window);
Result device_communicator_create(L, C, In requirements, Out made);
Result device_communicator_destroy(L, C, In made);

}  // namespace ddpdoctor::agent::nccl
