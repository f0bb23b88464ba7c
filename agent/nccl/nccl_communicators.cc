// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl/nccl_communicators.h"

#include <cstring>

#include "agent/inside.h"
#include "agent/record/group_table.h"

namespace ddpdoctor::agent::nccl {
namespace {

constexpr std::uint32_t kTable = 256;
constinit Known table[kTable]{};
Communicator const kTaken =
    reinterpret_cast<Communicator>(1);  // NOLINT(performance-no-int-to-ptr): a mark, never followed

/// Cache of each thread's last result, because consecutive calls usually use one communicator.
struct Newest {
  Communicator handle;
  Known* known;
};
constinit thread_local Newest newest{nullptr, nullptr};

std::uint32_t home(Communicator handle) {
  return static_cast<std::uint32_t>(
      (reinterpret_cast<std::uint64_t>(handle) * 0x9E3779B97F4A7C15U) >> 56U);
}

Known* take_place(Communicator handle) {
  for (std::uint32_t i = 0; i < kTable; ++i) {
    Known& place = table[(home(handle) + i) % kTable];
    Communicator seen = place.handle.load(std::memory_order_acquire);
    if (seen == handle || (seen == nullptr && place.handle.compare_exchange_strong(
                                                  seen, kTaken, std::memory_order_acq_rel))) {
      return &place;
    }
  }
  return nullptr;
}

struct Name {
  char text[5 + 16 + 1] = "nccl:";
};

Name name_of(std::uint64_t id) {
  constexpr char kDigits[] = "0123456789abcdef";
  Name name;
  for (int i = 0; i < 16; ++i) {
    name.text[5 + i] = kDigits[(id >> (60U - 4U * static_cast<unsigned>(i))) & 0xFU];
  }
  return name;
}

}  // namespace

Hash& Hash::eat(const void* bytes, std::size_t size) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  a_ ^= size;
  for (std::size_t left = size; left > 0;) {
    a_ += b_;
    b_ ^= a_;
    a_ = (a_ ^ (a_ >> 31U)) * 0x9DE62BBC8CEF3CE3U;
    b_ = (b_ ^ (b_ >> 32U)) * 0x485CD6311B599E79U;
    const std::size_t part = left < 8 ? left : 8;
    std::uint64_t word = 0;
    memcpy(&word, at, part);
    at += part;
    left -= part;
    a_ += word;
  }
  return *this;
}

std::uint64_t Hash::digest() const {
  std::uint64_t h = (a_ ^ (a_ >> 31U)) * 0xBAC3BD562846DE6BU + b_;
  h = (h ^ (h >> 32U)) * 0x995A187A14E7B445U;
  return h;
}

Known* known_communicator(Communicator handle) {
  if (newest.handle == handle && newest.known != nullptr &&
      newest.known->handle.load(std::memory_order_acquire) == handle) {
    return newest.known;
  }
  if (handle == nullptr || handle == kTaken) {
    return nullptr;
  }
  for (std::uint32_t i = 0; i < kTable; ++i) {
    Known& place = table[(home(handle) + i) % kTable];
    const Communicator seen = place.handle.load(std::memory_order_acquire);
    if (seen == handle) {
      newest = {handle, &place};
      return &place;
    }
    if (seen == nullptr) {
      break;
    }
  }
  return nullptr;
}

bool known_by_name(const wire::Ring& ring, std::uint64_t id) {
  const Name name = name_of(id);
  const std::uint32_t count = ring.header.groups.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count && i < wire::kGroups; ++i) {
    if (strcmp(ring.group[i].name, name.text) == 0) {
      return true;
    }
  }
  return false;
}

std::uint16_t new_group(wire::Ring& ring, const Library& library, std::uint64_t id, int rank,
                        int size) {
  const std::uint16_t group = add_named_group(ring, library.rccl ? "rccl" : "nccl",
                                              id == 0 ? "" : name_of(id).text, rank, size);
  if (group != 0 && id != 0 && ring.header.rank < 0 && size > 1 && rank >= 0) {
    // No launcher gave this process a rank: the first communicator is the world.
    ring.header.rank = rank;
    ring.header.world_size = size;
  }
  return group;
}

std::uint64_t new_local_id(const wire::Ring& ring) {
  const std::uint32_t groups = ring.header.groups.load(std::memory_order_acquire);
  return Hash()
      .eat(&ring.header.pid, sizeof ring.header.pid)
      .eat(&ring.header.start_ticks, sizeof ring.header.start_ticks)
      .eat(&groups, sizeof groups)
      .digest();
}

void remember_local(wire::Ring& ring, const Library& library, std::uint64_t id, Communicator handle,
                    int device, int devices) {
  const std::uint16_t group =
      add_named_group(ring, library.rccl ? "rccl" : "nccl", name_of(id).text, device, devices);
  remember(ring, handle, id, group, device, devices);
}

Known* remember(wire::Ring& ring, Communicator handle, std::uint64_t id, std::uint16_t group,
                int rank, int size) {
  if (handle == nullptr || group == 0) {
    return nullptr;
  }
  Known* const place = take_place(handle);
  if (place == nullptr) {
    return nullptr;
  }
  place->id = id;
  place->splits.store(0, std::memory_order_relaxed);
  place->shrinks.store(0, std::memory_order_relaxed);
  place->magic = 0;
  place->group = group;
  place->ending = false;
  place->rank = rank;
  place->size = size;
  ring.group[group - 1].backend = reinterpret_cast<std::uint64_t>(handle);
  place->handle.store(handle, std::memory_order_release);
  return place;
}

Known* communicator(wire::Ring& ring, const Library& library, Communicator handle) {
  if (Known* const known = known_communicator(handle); known != nullptr) {
    return known;
  }
  if (handle == nullptr) {
    return nullptr;
  }
  const Inside inside;
  int rank = -1;
  int size = -1;
  if (library.rank == nullptr || library.rank(handle, &rank) != kSuccess ||
      library.count == nullptr || library.count(handle, &size) != kSuccess) {
    rank = -1;
    size = -1;
  }
  return remember(ring, handle, 0, new_group(ring, library, 0, rank, size), rank, size);
}

void forget(wire::Ring* ring, Communicator handle) {
  Known* const known = known_communicator(handle);
  if (known == nullptr) {
    return;
  }
  if (ring != nullptr && known->group != 0) {
    ring->group[known->group - 1].backend = 0;
  }
  known->handle.store(kTaken, std::memory_order_release);  // kTaken keeps the probe sequence intact
  newest = {nullptr, nullptr};
}

void forget_all() {
  for (Known& known : table) {
    if (known.handle.load(std::memory_order_relaxed) != nullptr) {
      known.handle.store(nullptr, std::memory_order_relaxed);
    }
  }
  newest = {nullptr, nullptr};
}

}  // namespace ddpdoctor::agent::nccl
