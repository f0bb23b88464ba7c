// SPDX-License-Identifier: Apache-2.0
// What a node reports about its running ranks: the progress of each rank in each group and the
// fingerprint of its calls. A message always holds the whole state, so a lost message costs
// nothing. The bytes come from a network: every length is checked.
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
  Hashes hashes;               // its sequence = calls begun
};

struct RankMark {
  std::int32_t rank = -1;
  std::uint32_t pid = 0;  // on its own node
  std::uint64_t start_ticks = 0;
  std::uint64_t collectives = 0;  // begun since its start, all groups
  std::uint64_t lost = 0;         // events dropped because the buffer was full
  bool ended = false;             // the rank reported its exit
  std::vector<GroupMark> groups;
};

struct NodeMarks {
  std::string node;  // a subject word, unique per node
  std::string host;
  // Rendezvous address of the job's ranks, the same on all nodes; empty = unknown.
  std::string place;
  std::uint64_t counter = 0;     // number of this message
  double time = 0;               // seconds since the epoch, by the node's clock
  std::int32_t world_size = -1;  // -1 = unknown
  std::uint32_t alarms = 0;      // times that the node alone could prove a problem
  bool ended = false;            // the node's part of the job is over …
  std::int32_t status = 0;       // … with this exit status
  std::vector<RankMark> ranks;
};

std::string write_marks(const NodeMarks& marks);

/// Returns nothing when the bytes are not marks or are incomplete.
std::optional<NodeMarks> read_marks(std::string_view bytes);

}  // namespace ddpdoctor::fleet
