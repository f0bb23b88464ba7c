// SPDX-License-Identifier: Apache-2.0
// What a node says of its ranks while they run: how far each has come in each group, and the
// fingerprint of its calls. Always the whole state: the newest message alone says everything, so
// that a lost one costs nothing. Bytes come from a network: every length is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/fleet/fingerprint.h"

namespace ddpdoctor::fleet {

struct GroupMark {
  std::string group;       // torch's name
  std::int32_t size = -1;  // -1 = unknown
  std::uint32_t completed = 0;
  std::uint8_t operation = 0;  // wire::Operation of the newest call
  Hashes hashes;               // its sequence: calls begun
};

struct RankMark {
  std::int32_t rank = -1;
  std::uint32_t pid = 0;  // on its node
  std::uint64_t start_ticks = 0;
  std::uint64_t collectives = 0;  // begun since its start, all groups
  std::uint64_t lost = 0;         // events that had no room
  bool ended = false;             // it said that it ends
  std::vector<GroupMark> groups;
};

struct NodeMarks {
  std::string node;  // a word that no other node has
  std::string host;
  std::string place;          // where the job's ranks meet: the same on all nodes; empty = unknown
  std::uint64_t counter = 0;  // of this message
  double time = 0;            // by the node's clock, seconds since the epoch
  std::int32_t world_size = -1;  // -1 = unknown
  std::uint32_t alarms = 0;      // how often something was provable on the node alone
  bool ended = false;            // the node's part of the job is over …
  std::int32_t status = 0;       // … with this exit status
  std::vector<RankMark> ranks;
};

std::string write_marks(const NodeMarks& marks);

/// Nothing when the bytes are no marks, or not whole.
std::optional<NodeMarks> read_marks(std::string_view bytes);

}  // namespace ddpdoctor::fleet
