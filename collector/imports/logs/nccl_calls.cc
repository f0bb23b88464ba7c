// SPDX-License-Identifier: Apache-2.0
// NCCL 2.3 – 2.32: "Broadcast: opCount 0 sendbuff 0x… recvbuff 0x… count 53 datatype 4 op 0 root 0
// comm 0x7f88 [nranks=8] stream 0x…", and "comm 0x7f88 rank 0 nranks 8 …" before it.
#include "collector/imports/logs/nccl_calls.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/logs/fabric_text.h"
#include "collector/imports/logs/nccl_ranks.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"
#include "collector/model/operation_kinds.h"
#include "collector/model/operations.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostComms = 1 << 16;
constexpr std::size_t kMostCallsOfComm = 100'000;
constexpr std::size_t kLongestCallLine = 512;
constexpr std::string_view kOpCount = ": opCount ";

/// ncclDataType_t and ncclRedOp_t, in the order of nccl.h.
constexpr std::array<std::string_view, 12> kTypes = {
    "int8",    "uint8",   "int32",   "uint32",   "int64",         "uint64",
    "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"};
constexpr std::array<std::string_view, 5> kReductions = {"sum", "product", "max", "min", "avg"};

template <typename Table>
std::string named(const Table& table, std::optional<std::int64_t> number) {
  return number && static_cast<std::size_t>(*number) < table.size()
             ? std::string(table[static_cast<std::size_t>(*number)])
             : std::string();
}

/// One communicator of one process.
struct Comm {
  std::optional<model::Rank> rank;
  std::int64_t size = 0;
  std::string id;           // "0x437f083ea6e91e43"; NCCL 2.18 and later
  std::uint64_t first = 0;  // number of the first launch in the log
  std::uint64_t lines = 0;
  bool whole = true;  // no line is lost since the first one
  std::vector<model::CollectiveCall> calls;
};

using CommKey = std::pair<HostPid, std::string>;  // the process, and "comm 0x420e1c40"
using Comms = std::map<CommKey, Comm>;

/// "… comm 0x420e1c40 rank 1 nranks 3 cudaDev 0 … commId 0x437f083ea6e91e43 - Init START".
void read_member(std::string_view info, Comm& comm) {
  const auto rank = number_behind(info, " rank ", kMaxRank);
  const auto size = comm_size_in(info);
  if (rank && size) {
    comm.rank = static_cast<model::Rank>(*rank);
    comm.size = *size;
    comm.id = between(info, "commId ", " ").value_or(comm.id);
  }
}

/// NCCL counts launches, and a launch may have several calls: a number above that of the lines
/// before it shows that lines are missing. A log without its beginning can only be counted if each
/// launch had one call.
bool loses_lines(std::uint64_t launches, const Comm& comm) {
  return comm.first == 0 ? launches > comm.lines : launches != comm.first + comm.lines;
}

void read_call(std::string_view info, Comm& comm) {
  const std::size_t at = info.find(kOpCount);
  const std::string_view number = info.substr(at + kOpCount.size());
  const auto launches = hex_of("0x" + std::string(number.substr(0, number.find(' '))));
  comm.first = comm.lines == 0 ? launches.value_or(0) : comm.first;
  comm.whole = comm.whole && launches && !loses_lines(*launches, comm);
  ++comm.lines;
  const model::Operation operation = model::operation_of(info.substr(0, at));
  comm.whole = comm.whole && !(comm.first > 0 && operation.point_to_point);
  if (!comm.whole || operation.point_to_point || comm.calls.size() == kMostCallsOfComm) {
    return;
  }
  model::CollectiveCall call;
  call.operation = operation.name;
  const model::OperationKind kind = model::kind_of(call.operation);
  call.count = number_behind(info, " count ", kMaxNumber);
  call.dtype = named(kTypes, number_behind(info, " datatype ", kMaxNumber));
  if (kind.reduces) {
    call.reduce_op = named(kReductions, number_behind(info, " op ", kMaxNumber));
  }
  const auto root = number_behind(info, " root ", kMaxRank);
  if (root && kind.has_root) {
    call.root = static_cast<model::Rank>(*root);
  }
  call.sequence = static_cast<std::int64_t>(comm.first + comm.calls.size()) + 1;
  // The log does not show the end of a call: no rank is reported as waiting in one.
  call.state = model::CallState::kCompleted;
  comm.calls.push_back(std::move(call));
}

Comms comms_in(std::string_view log) {
  Comms comms;
  for (const std::string_view raw : base::split(log, '\n')) {
    const model::LogLine line = model::read_log_line(raw.substr(0, kLongestCallLine));
    const std::string_view info = nccl_info(line.text);
    const std::size_t at = info.find("comm 0x");
    const auto tag = at == info.npos ? std::nullopt : nccl_tag(line.text);
    if (!tag) {
      continue;
    }
    const std::string_view pointer = info.substr(at, info.find(' ', at + 5) - at);
    const CommKey key{{std::string(tag->host), tag->pid}, std::string(pointer)};
    if (!comms.contains(key) && comms.size() == kMostComms) {
      continue;
    }
    Comm& comm = comms[key];
    base::contains(info, kOpCount) ? read_call(info, comm) : read_member(info, comm);
  }
  return comms;
}

/// A communicator of `world` ranks.
model::ProcessGroup group_of_all(const std::string& id, std::int64_t world) {
  model::ProcessGroup out{
      .id = id, .name = "the communicator of all ranks", .backend = "nccl", .ranks = {}};
  for (model::Rank rank = 0; rank < world; ++rank) {
    out.ranks.push_back(rank);
  }
  return out;
}

}  // namespace

void read_nccl_calls(std::string_view log, model::JobModel& job) {
  if (!base::contains(log, kOpCount)) {
    return;
  }
  const Comms comms = comms_in(log);
  std::int64_t world = 0;
  for (const auto& [key, comm] : comms) {
    world = std::max(world, comm.size);
  }
  std::map<HostPid, int> of_world;  // communicators of all ranks, by process
  for (const auto& [key, comm] : comms) {
    of_world[key.first] += comm.size == world ? 1 : 0;
  }
  std::set<std::string> groups;
  for (const auto& [key, comm] : comms) {
    const bool known = !comm.id.empty() || of_world[key.first] == 1;
    if (world < 2 || comm.size != world || !comm.rank || !known) {
      continue;
    }
    const std::string group = comm.id.empty() ? "nccl" : "nccl:" + comm.id;
    if (groups.insert(group).second) {
      job.groups.push_back(group_of_all(group, world));
    }
    for (model::CollectiveCall call : comm.calls) {
      call.rank = *comm.rank;
      call.group = group;
      job.collectives.push_back(std::move(call));
    }
  }
}

}  // namespace ddpdoctor::imports
