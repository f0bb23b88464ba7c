// SPDX-License-Identifier: Apache-2.0
// A ring as an agent would write it, built in memory: each test changes the part that it is about.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "wire/events.h"
#include "wire/layout.h"

namespace ddpdoctor::sources::test {

class RingInMemory {
 public:
  RingInMemory() : bytes_(sizeof(wire::Ring)) {
    wire::Header& header = ring().header;
    header.magic = wire::kMagic;
    header.version = wire::kVersion;
    header.bytes = sizeof(wire::Ring);
    header.pid = 4711;
    header.ppid = 4700;
    header.rank = 1;
    header.world_size = 2;
    header.monotonic_ns = 1'000'000'000;
    header.wall_ns = 1'700'000'000'000'000'000;
    header.sites = 1;
    header.text_used = 1;
  }

  wire::Ring& ring() {
    return *reinterpret_cast<wire::Ring*>(bytes_.data());
  }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return bytes_;
  }

  /// A group with this process as `group_rank` of `size`; returns its number in slots.
  std::uint16_t add_group(std::string_view name, int group_rank, int size) {
    const std::uint32_t index = ring().header.groups++;
    wire::Group& group = ring().group[index];
    std::memcpy(group.name, name.data(), name.size());
    std::memcpy(group.backend_name, "gloo", 4);
    group.group_rank = group_rank;
    group.size = size;
    return static_cast<std::uint16_t>(index + 1);
  }

  std::uint32_t add_text(std::string_view text) {
    const std::uint32_t offset = ring().header.text_used.load();
    std::memcpy(ring().text + offset, text.data(), text.size());
    ring().header.text_used += static_cast<std::uint32_t>(text.size() + 1);
    return offset;
  }

  std::uint32_t add_site(std::uint32_t caller, std::string_view file, std::uint32_t line) {
    const std::uint32_t index = ring().header.sites++;
    ring().site[index].caller = caller;
    ring().site[index].file = add_text(file);
    ring().site[index].function = add_text("step");
    ring().site[index].line = line;
    return index;
  }

  /// The next slot, published.
  wire::Slot& add_slot(wire::EventKind kind, wire::Phase phase) {
    const std::uint64_t index = ring().header.head++;
    wire::Slot& slot = ring().slot[index % wire::kSlots];
    slot.sequence = index + 1;
    slot.time = 2'000'000'000 + index;
    slot.kind = static_cast<std::uint16_t>(kind);
    slot.phase = static_cast<std::uint8_t>(phase);
    slot.dtype = 255;
    slot.reduce_op = 255;
    slot.count = -1;
    slot.peer = -1;
    return slot;
  }

  wire::Slot& add_call(std::uint16_t group, std::uint32_t sequence, wire::Operation operation) {
    wire::Slot& slot = add_slot(wire::EventKind::kCollective, wire::Phase::kEnqueued);
    slot.group = group;
    slot.group_sequence = sequence;
    slot.operation = static_cast<std::uint8_t>(operation);
    if (group <= wire::kGroups && group > 0) {
      ring().group[group - 1].enqueued = sequence;
    }
    return slot;
  }

  void end_call(std::uint16_t group, std::uint32_t sequence,
                wire::Phase phase = wire::Phase::kCompleted) {
    wire::Slot& slot = add_slot(wire::EventKind::kCollective, phase);
    slot.group = group;
    slot.group_sequence = sequence;
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace ddpdoctor::sources::test
