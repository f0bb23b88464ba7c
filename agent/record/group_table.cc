// SPDX-License-Identifier: Apache-2.0
#include "agent/record/group_table.h"

#include <cstring>

#include "agent/c10d/torch_objects.h"
#include "agent/hooks.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

std::uint16_t add_group(wire::Ring& ring, std::uint64_t backend) {
  const std::uint32_t index = ring.header.groups.fetch_add(1, std::memory_order_acq_rel);
  if (index >= wire::kGroups) {
    ring.header.groups.store(wire::kGroups, std::memory_order_relaxed);
    return 0;
  }
  wire::Group& group = ring.group[index];
  group.group_rank = -1;
  group.size = -1;
  group.backend = backend;
  memcpy(group.backend_name, "gloo", 5);
  return static_cast<std::uint16_t>(index + 1);
}

}  // namespace

std::uint16_t known_group(const wire::Ring& ring, std::uint64_t backend) {
  const std::uint32_t count = ring.header.groups.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count && i < wire::kGroups; ++i) {
    if (ring.group[i].backend == backend) {
      return static_cast<std::uint16_t>(i + 1);
    }
  }
  return 0;
}

std::uint16_t add_named_group(wire::Ring& ring, const char* backend_name, const char* name,
                              std::int32_t group_rank, std::int32_t size) {
  const std::uint16_t index = add_group(ring, 0);
  if (index == 0) {
    ring.header.lost.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  wire::Group& group = ring.group[index - 1];
  strncpy(group.backend_name, backend_name, sizeof group.backend_name - 1);
  strncpy(group.name, name, sizeof group.name - 1);
  group.group_rank = group_rank;
  group.size = size;
  return index;
}

std::uint16_t group_index(wire::Ring& ring, std::uint64_t backend) {
  const std::uint16_t known = known_group(ring, backend);
  return known != 0 ? known : add_group(ring, backend);
}

void remember_version(wire::Ring& ring) {
  if (ring.header.torch_version[0] == 0 && torch_functions().version[0] != 0) {
    memcpy(ring.header.torch_version, torch_functions().version, sizeof ring.header.torch_version);
  }
}

namespace {
/// A new group: data of an earlier group at the same address does not apply. Returns 0 if the table
/// is full.
std::uint16_t new_group(wire::Ring& ring, std::uint64_t backend) {
  const std::uint16_t known = known_group(ring, backend);
  if (known != 0) {
    wire::Group& old = ring.group[known - 1];
    if (old.enqueued == 0 && old.point_to_point == 0) {
      old.name[0] = 0;
      return known;
    }
    old.backend = 0;
  }
  return add_group(ring, backend);
}

/// MPI's communicators may be older, but they are not groups of torch.
bool is_first_of_torch(const wire::Ring& ring, std::uint16_t index) {
  for (std::uint16_t i = 1; i < index; ++i) {
    if (strncmp(ring.group[i - 1].backend_name, "mpi", sizeof wire::Group::backend_name) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

/// ProcessGroupWrapper(backend, group of its checks): represents the backend from now on.
void wrapper_constructed(const Arguments& arguments) {
  wire::Ring* const ring_now = ring_or_make();
  if (ring_now == nullptr) {
    return;
  }
  const std::uint16_t inner = known_group(*ring_now, as<std::uint64_t>(arguments.value[1]));
  const std::uint16_t checks = known_group(*ring_now, as<std::uint64_t>(arguments.value[2]));
  const std::uint16_t outer = new_group(*ring_now, arguments.value[0]);
  if (checks != 0 && checks != inner) {
    ring_now->group[checks - 1].checks = 1;
  }
  if (outer != 0 && inner != 0) {
    ring_now->group[outer - 1].group_rank = ring_now->group[inner - 1].group_rank;
    ring_now->group[outer - 1].size = ring_now->group[inner - 1].size;
  }
}

void backend_found(const Arguments& arguments, std::uint64_t result) {
  wire::Ring* const ring_now = ring();
  if (ring_now == nullptr || result == 0) {
    return;
  }
  const std::uint64_t backend = as<std::uint64_t>(result);
  const std::uint64_t process_group = arguments.value[1];
  const std::uint16_t index = group_index(*ring_now, backend);
  if (index == 0) {
    return;
  }
  wire::Group& group = ring_now->group[index - 1];
  if (group.process_group == process_group && group.name[0] != 0) {
    return;
  }
  group.process_group = process_group;
  const TorchFunctions& torch = torch_functions();
  const auto* const asked = reinterpret_cast<const void*>(process_group);
  String name{};
  if (torch.group_name != nullptr) {
    name = *static_cast<const String*>(torch.group_name(asked));
  } else if (torch.group_name_old != nullptr) {
    name = static_cast<const OldString*>(torch.group_name_old(asked))->plain();
  }
  if (name.text != nullptr && name.length < sizeof group.name) {
    memcpy(group.name, name.text, name.length);
  }
}

void group_constructed(const Arguments& arguments) {
  wire::Ring* const ring_now = ring_or_make();
  if (ring_now == nullptr) {
    return;
  }
  remember_version(*ring_now);
  const std::uint16_t index = new_group(*ring_now, arguments.value[0]);
  if (index == 0) {
    ring_now->header.lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  wire::Group& group = ring_now->group[index - 1];
  group.group_rank = static_cast<std::int32_t>(arguments.value[2]);
  group.size = static_cast<std::int32_t>(arguments.value[3]);
  if (is_first_of_torch(*ring_now, index) && ring_now->header.rank < 0) {
    ring_now->header.rank = group.group_rank;  // the first group is the world
    ring_now->header.world_size = group.size;
  }
  record(*ring_now, {.kind = wire::EventKind::kGroupCreated,
                     .site = call_site(*ring_now),
                     .group = index,
                     .count = group.size,
                     .peer = group.group_rank});
}

}  // namespace ddpdoctor::agent
