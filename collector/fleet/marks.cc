// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/marks.h"

#include <bit>
#include <limits>
#include <map>

#include "collector/fleet/packed.h"

namespace ddpdoctor::fleet {
namespace {

constexpr std::uint32_t kMagic = 0x314D4444;        // "DDM1"
constexpr std::uint64_t kMostRanks = 4096;          // of one node
constexpr std::uint64_t kMostGroupsInMarks = 4096;  // names in a message, and groups of one rank
constexpr std::uint64_t kMostNumber = std::numeric_limits<std::int32_t>::max();

/// Each group name is written once, because many ranks share it.
std::map<std::string, std::uint64_t> names_of(const NodeMarks& marks) {
  std::map<std::string, std::uint64_t> names;
  for (const RankMark& rank : marks.ranks) {
    for (const GroupMark& group : rank.groups) {
      names.emplace(group.group, 0);
    }
  }
  std::uint64_t next = 0;
  for (auto& [name, index] : names) {
    index = next++;
  }
  return names;
}

void write_group(const GroupMark& mark, std::uint64_t name, Packer& out) {
  out.number(name);
  out.signed_number(mark.size);
  out.number(mark.hashes.sequence);
  out.number(mark.completed);
  out.number(mark.operation);
  for (const std::uint32_t hash : mark.hashes.newest) {
    out.word(hash);
  }
  for (const std::uint32_t hash : mark.hashes.at_step) {
    out.word(hash);
  }
}

GroupMark read_group(const std::vector<std::string>& names, Unpacker& in) {
  GroupMark mark;
  const std::uint64_t name = in.number_up_to(names.empty() ? 0 : names.size() - 1);
  mark.group = names.empty() ? std::string() : names[name];
  mark.size = static_cast<std::int32_t>(in.number_up_to(kMostNumber)) - 1;
  mark.hashes.sequence = static_cast<std::uint32_t>(in.number_up_to(~std::uint32_t{0}));
  mark.completed = static_cast<std::uint32_t>(in.number_up_to(~std::uint32_t{0}));
  mark.operation = static_cast<std::uint8_t>(in.number_up_to(~std::uint8_t{0} & 0xFFU));
  for (std::uint32_t& hash : mark.hashes.newest) {
    hash = in.word();
  }
  for (std::uint32_t& hash : mark.hashes.at_step) {
    hash = in.word();
  }
  return mark;
}

RankMark read_rank(const std::vector<std::string>& names, Unpacker& in) {
  RankMark mark;
  mark.rank = static_cast<std::int32_t>(in.number_up_to(kMostNumber)) - 1;
  mark.pid = static_cast<std::uint32_t>(in.number_up_to(kMostNumber));
  mark.start_ticks = in.number();
  mark.collectives = in.number();
  mark.lost = in.number();
  mark.ended = in.number_up_to(1) == 1;
  const std::uint64_t groups = in.number_up_to(kMostGroupsInMarks);
  for (std::uint64_t i = 0; i < groups && !in.failed(); ++i) {
    mark.groups.push_back(read_group(names, in));
  }
  return mark;
}

}  // namespace

std::string write_marks(const NodeMarks& marks) {
  Packer out;
  out.word(kMagic);
  out.text(marks.node);
  out.text(marks.host);
  out.text(marks.place);
  out.number(marks.counter);
  out.number(std::bit_cast<std::uint64_t>(marks.time));
  out.signed_number(marks.world_size);
  out.number(marks.alarms);
  out.number(marks.ended ? 1 : 0);
  out.number(static_cast<std::uint32_t>(marks.status));
  const auto names = names_of(marks);
  out.number(names.size());
  for (const auto& [name, index] : names) {
    out.text(name);
  }
  out.number(marks.ranks.size());
  for (const RankMark& rank : marks.ranks) {
    out.signed_number(rank.rank);
    out.number(rank.pid);
    out.number(rank.start_ticks);
    out.number(rank.collectives);
    out.number(rank.lost);
    out.number(rank.ended ? 1 : 0);
    out.number(rank.groups.size());
    for (const GroupMark& group : rank.groups) {
      write_group(group, names.at(group.group), out);
    }
  }
  return out.take();
}

std::optional<NodeMarks> read_marks(std::string_view bytes) {
  Unpacker in(bytes);
  if (in.word() != kMagic) {
    return std::nullopt;
  }
  NodeMarks marks;
  marks.node = in.text();
  marks.host = in.text();
  marks.place = in.text();
  marks.counter = in.number();
  marks.time = std::bit_cast<double>(in.number());
  marks.world_size = static_cast<std::int32_t>(in.number_up_to(kMostNumber)) - 1;
  marks.alarms = static_cast<std::uint32_t>(in.number_up_to(~std::uint32_t{0}));
  marks.ended = in.number_up_to(1) == 1;
  marks.status = static_cast<std::int32_t>(in.number_up_to(~std::uint32_t{0}));
  std::vector<std::string> names(in.number_up_to(kMostGroupsInMarks));
  for (std::string& name : names) {
    name = in.text();
  }
  const std::uint64_t ranks = in.number_up_to(kMostRanks);
  for (std::uint64_t i = 0; i < ranks && !in.failed(); ++i) {
    marks.ranks.push_back(read_rank(names, in));
  }
  return in.failed() || !in.at_end() || marks.node.empty() ? std::nullopt : std::optional(marks);
}

}  // namespace ddpdoctor::fleet
