// SPDX-License-Identifier: Apache-2.0
// The probes of nccl_functions.inc: NCCL's arguments behind the library that the call is bound to.
#pragma once

#include <cstddef>

#include "agent/nccl/nccl_library.h"

namespace ddpdoctor::agent::nccl {

using L = const Library&;
using C = Communicator;
using S = Stream;
using In = const void*;
using Out = void*;
using Size = std::size_t;

Result all_reduce(L, In, Out, Size, int type, int op, C, S);
Result broadcast(L, In, Out, Size, int type, int root, C, S);
Result broadcast_in_place(L, Out, Size, int type, int root, C, S);
Result reduce(L, In, Out, Size, int type, int op, int root, C, S);
Result all_gather(L, In, Out, Size, int type, C, S);
Result reduce_scatter(L, In, Out, Size, int type, int op, C, S);
Result all_to_all(L, In, Out, Size, int type, C, S);
Result gather(L, In, Out, Size, int type, int root, C, S);
Result scatter(L, In, Out, Size, int type, int root, C, S);
Result all_reduce_config(L, In, Out, Size, int type, int op, C, S, In config);
Result broadcast_config(L, In, Out, Size, int type, int root, C, S, In config);
Result reduce_config(L, In, Out, Size, int type, int op, int root, C, S, In config);
Result all_gather_config(L, In, Out, Size, int type, C, S, In config);
Result reduce_scatter_config(L, In, Out, Size, int type, int op, C, S, In config);
Result all_to_all_config(L, In, Out, Size, int type, C, S, In config);
Result gather_config(L, In, Out, Size, int type, int root, C, S, In config);
Result scatter_config(L, In, Out, Size, int type, int root, C, S, In config);
Result all_to_all_rccl(L, In, Out, Size, int type, C, S);
Result all_to_all_v(L, In, In, In, Out, In, In, int type, C, S);
Result all_to_all_v_nccl(L, In, In, In, Out, In, In, int type, C, S);
Result all_reduce_with_bias(L, In, Out, Size, int type, int op, C, S, In bias);
Result send(L, In, Size, int type, int peer, C, S);
Result receive(L, Out, Size, int type, int peer, C, S);
Result put_signal(L, In, Size, int type, int peer, Out window, Size offset, int signal, int context,
                  unsigned flags, C, S);
Result signal(L, int peer, int signal, int context, unsigned flags, C, S);
Result wait_signal(L, int count, Out descriptions, C, S);

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
