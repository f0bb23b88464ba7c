// SPDX-License-Identifier: Apache-2.0
// The begin and end of NCCL's communicators. The name is determined before the real call, so that a
// rank that waits in it for a missing rank can be recognized.
#include <cstring>

#include "agent/inside.h"
#include "agent/nccl/nccl_calls.h"
#include "agent/nccl/nccl_probes.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent::nccl {
namespace {

std::uint64_t id_of(const UniqueId& id) {
  return Hash().eat(id.bytes, sizeof id.bytes).digest();
}

std::uint64_t first_word(const UniqueId& id) {
  std::uint64_t word = 0;
  memcpy(&word, id.bytes, sizeof word);
  return word;
}

std::uint64_t combined(std::uint64_t base, std::uint64_t value) {
  return Hash().eat(&base, sizeof base).eat(&value, sizeof value).digest();
}

/// As in NCCL (since 2.29): members compute the same word from their parent that new ranks get in
/// the id.
std::uint64_t magic_of_grown(Known* parent, const UniqueId* id) {
  if (parent == nullptr) {
    return id == nullptr ? 0 : first_word(*id);
  }
  const std::uint32_t child = parent->splits.fetch_add(1, std::memory_order_relaxed) + 1;
  return parent->magic == 0 ? 0 : combined(parent->magic, child);
}

/// NCCL's own name of a shrunk communicator, which is also its magic.
std::uint64_t magic_of_shrunk(const Known& parent) {
  const std::int32_t none = 0;
  return parent.id == 0 ? 0
                        : Hash()
                              .eat(&parent.id, sizeof parent.id)
                              .eat(&none, sizeof none)
                              .eat(&none, sizeof none)
                              .digest();
}

/// As in NCCL: hash of the parent, its number of splits, and the color.
std::uint64_t id_of_split(Known& parent, int color) {
  const auto child =
      static_cast<std::int32_t>(parent.splits.fetch_add(1, std::memory_order_relaxed) + 1);
  return parent.id == 0 ? 0
                        : Hash()
                              .eat(&parent.id, sizeof parent.id)
                              .eat(&child, sizeof child)
                              .eat(&color, sizeof color)
                              .digest();
}

/// NCCL gives two shrinks of one parent the same hash; ours distinguishes them.
std::uint64_t id_of_shrink(Known& parent, const int* excluded, int count) {
  const std::uint32_t number = parent.shrinks.fetch_add(1, std::memory_order_relaxed) + 1;
  Hash hash;
  hash.eat(&parent.id, sizeof parent.id).eat(&number, sizeof number);
  for (int i = 0; excluded != nullptr && i < count && i < 1024; ++i) {
    hash.eat(&excluded[i], sizeof excluded[i]);
  }
  return parent.id == 0 ? 0 : hash.digest();
}

/// A parent in this process; null if nothing is recorded.
Known* parent_of(L library, C communicator) {
  wire::Ring* const ring_now = is_nested() ? nullptr : ring_or_make();
  return ring_now == nullptr ? nullptr : nccl::communicator(*ring_now, library, communicator);
}

/// Calls in progress end with the communicator.
void forget_it(C communicator, Result result) {
  wire::Ring* const ring_now = ring();
  if (ring_now != nullptr && result != kInProgress) {
    answered(*ring_now, communicator, result, asked_now());
  }
}

}  // namespace

Result get_unique_id(L library, UniqueId* id) {
  return real<kncclGetUniqueId>(library, id);
}

Result communicator_get_unique_id(L library, C communicator, UniqueId* id) {
  return real<kncclCommGetUniqueId>(library, communicator, id);
}

Result init_rank(L library, C* made, int size, UniqueId id, int rank) {
  AroundHost around(library, id_of(id), rank, size, first_word(id));
  return around.with(real<kncclCommInitRank>(library, made, size, id, rank), made);
}

Result init_rank_config(L library, C* made, int size, UniqueId id, int rank, Out config) {
  AroundHost around(library, id_of(id), rank, size, first_word(id));
  return around.with(real<kncclCommInitRankConfig>(library, made, size, id, rank, config), made);
}

Result init_rank_scalable(L library, C* made, int size, int rank, int ids, const UniqueId* id,
                          Out config) {
  const bool known = ids > 0 && id != nullptr;
  AroundHost around(library, known ? id_of(*id) : 0, rank, size, known ? first_word(*id) : 0);
  return around.with(real<kncclCommInitRankScalable>(library, made, size, rank, ids, id, config),
                     made);
}

/// One process with several GPUs: all ranks of the communicator are in it.
Result init_all(L library, C* made, int count, const int* devices) {
  const Result result = real<kncclCommInitAll>(library, made, count, devices);
  wire::Ring* const ring_now = is_nested() || switched_off ? nullptr : ring_or_make();
  if (ring_now != nullptr && result == kSuccess && made != nullptr) {
    const Inside inside;
    const std::uint64_t id = new_local_id(*ring_now);
    for (int device = 0; device < count; ++device) {
      remember_local(*ring_now, library, id, made[device], device, count);
    }
  }
  return result;
}

Result split(L library, C communicator, int color, int key, C* made, Out config) {
  Known* const parent = parent_of(library, communicator);
  const std::uint64_t id = parent == nullptr ? 0 : id_of_split(*parent, color);
  AroundHost around(library, kCommunicatorSplit, communicator);
  const bool comes = id != 0 && color >= 0;
  return around.with_split(real<kncclCommSplit>(library, communicator, color, key, made, config),
                           id, comes ? made : nullptr);
}

Result shrink(L library, C communicator, const int* excluded, int count, C* made, Out config,
              int flags) {
  Known* const parent = parent_of(library, communicator);
  const std::uint64_t id = parent == nullptr ? 0 : id_of_shrink(*parent, excluded, count);
  int rank = parent == nullptr ? -1 : parent->rank;
  for (int i = 0; parent != nullptr && excluded != nullptr && i < count; ++i) {
    rank -= excluded[i] < parent->rank ? 1 : 0;
  }
  AroundHost around(library, id, rank, parent == nullptr ? -1 : parent->size - count,
                    parent == nullptr ? 0 : magic_of_shrunk(*parent), communicator);
  return around.with(
      real<kncclCommShrink>(library, communicator, excluded, count, made, config, flags), made);
}

/// Former members pass the parent and keep their number; new ranks pass an id.
Result grow(L library, C communicator, int size, const UniqueId* id, int rank, C* made,
            Out config) {
  Known* const parent = parent_of(library, communicator);
  const bool lost = communicator != nullptr && parent == nullptr;  // an unknown parent
  const std::uint64_t magic = lost ? 0 : magic_of_grown(parent, id);
  AroundHost around(library, magic == 0 ? 0 : combined(magic, static_cast<std::uint64_t>(size)),
                    parent == nullptr ? rank : parent->rank, size, magic, communicator);
  return around.with(real<kncclCommGrow>(library, communicator, size, id, rank, made, config),
                     made);
}

Result suspend(L library, C communicator, int flags) {
  return real<kncclCommSuspend>(library, communicator, flags);
}

Result resume(L library, C communicator) {
  return real<kncclCommResume>(library, communicator);
}

Result revoke(L library, C communicator, int flags) {
  return real<kncclCommRevoke>(library, communicator, flags);
}

/// Some ranks call finalize and destroy, others only destroy: the end is recorded once, at the
/// first of these calls.
Result finalize(L library, C communicator) {
  AroundHost around(library, kCommunicatorEnd, communicator);
  if (Known* const known = known_communicator(communicator); known != nullptr) {
    known->ending = true;
  }
  return around.with(real<kncclCommFinalize>(library, communicator));
}

Result destroy(L library, C communicator) {
  const Known* const known = known_communicator(communicator);
  if (is_nested() || known == nullptr || known->ending) {
    const Result result = real<kncclCommDestroy>(library, communicator);
    forget_it(communicator, result);
    forget(ring(), communicator);
    return result;
  }
  AroundHost around(library, kCommunicatorEnd, communicator);
  const Result result = real<kncclCommDestroy>(library, communicator);
  forget_it(communicator, result);
  forget(ring(), communicator);
  return around.with(result);
}

Result abort_communicator(L library, C communicator) {
  forget(ring(), communicator);
  const Result result = real<kncclCommAbort>(library, communicator);
  forget_it(communicator, kInternalError);
  return result;
}

Result get_async_error(L library, C communicator, Result* state) {
  const std::uint64_t asked = asked_now();
  const Result result = real<kncclCommGetAsyncError>(library, communicator, state);
  wire::Ring* const ring_now = ring();
  if (ring_now != nullptr && result == kSuccess && state != nullptr && !is_nested()) {
    answered(*ring_now, communicator, *state, asked);
    if (*state == kInProgress) {
      still_in_progress(*ring_now, communicator);
    }
  }
  return result;
}

Result create_reduce_op(L library, int* op, Out scalar, int type, int residence, C communicator) {
  return real<kncclRedOpCreatePreMulSum>(library, op, scalar, type, residence, communicator);
}

Result destroy_reduce_op(L library, int op, C communicator) {
  return real<kncclRedOpDestroy>(library, op, communicator);
}

Result window_register(L library, C communicator, Out buffer, Size size, Out* window, int flags) {
  AroundHost around(library, kWindowRegister, communicator);
  return around.with(
      real<kncclCommWindowRegister>(library, communicator, buffer, size, window, flags));
}

Result window_deregister(L library, C communicator, Out window) {
  return real<kncclCommWindowDeregister>(library, communicator, window);
}

/// From now on kernels may communicate directly, which cannot be observed.
Result device_communicator_create(L library, C communicator, In requirements, Out made) {
  AroundHost around(library, kDeviceCommunicator, communicator);
  return around.with(real<kncclDevCommCreate>(library, communicator, requirements, made));
}

Result device_communicator_destroy(L library, C communicator, In made) {
  return real<kncclDevCommDestroy>(library, communicator, made);
}

}  // namespace ddpdoctor::agent::nccl
