// SPDX-License-Identifier: Apache-2.0
#include "collector/model/torch_evidence.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "collector/model/call_frames.h"
#include "collector/model/operation_kinds.h"
#include "collector/model/operations.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

using stacks::FlightRecord;
using stacks::TorchGroup;

constexpr std::string_view kWorldGroup = "0";  // torch numbers groups from 0, the world first
constexpr std::string_view kWorldName = "default_pg";
constexpr double kNanosecond = 1e-9;

bool is_described(std::string_view description) {
  return !description.empty() && description != "undefined";
}

ProcessGroup* find_group(JobModel& job, std::string_view id) {
  const auto found = std::find_if(job.groups.begin(), job.groups.end(),
                                  [id](const ProcessGroup& g) { return g.id == id; });
  return found == job.groups.end() ? nullptr : &*found;
}

std::vector<Rank> believable(const std::vector<int>& ranks) {
  const bool good = std::all_of(ranks.begin(), ranks.end(),
                                [](int rank) { return rank >= 0 && rank < kMaxWorldSize; });
  return good ? ranks : std::vector<Rank>();
}

/// The job-wide id of this process's group: torch's name, made unique if members differ.
std::string id_in_job(JobModel& job, const TorchGroup& group) {
  const std::vector<Rank> ranks = believable(group.ranks);
  const ProcessGroup* known = find_group(job, group.name);
  if (known == nullptr || known->ranks.empty() || ranks.empty() || known->ranks == ranks) {
    return group.name;
  }
  return id_of_namesake(group.name, RankSet(ranks));
}

std::string add_group(JobModel& job, const TorchGroup& group) {
  const std::string id = id_in_job(job, group);
  ProcessGroup* known = find_group(job, id);
  if (known == nullptr) {
    job.groups.push_back({.id = id, .name = {}, .backend = {}, .ranks = {}});
    known = &job.groups.back();
  }
  if (known->ranks.empty()) {
    known->ranks = believable(group.ranks);
  }
  if (known->backend.empty()) {
    known->backend = group.backend;
  }
  if (known->name.empty() && is_described(group.description)) {
    known->name = group.description;
  }
  return id;
}

/// The group of a record, by torch's name for it in that process.
std::string group_of(const FlightRecord& record, const stacks::TorchState& state) {
  if (!record.group_name.empty()) {
    return record.group_name;
  }
  if (record.group_id >= 0) {
    const auto index = static_cast<std::size_t>(record.group_id);
    return index < state.groups.size() ? state.groups[index].name : std::to_string(record.group_id);
  }
  return is_described(record.group_description) && record.group_description != kWorldName
             ? record.group_description
             : std::string(kWorldGroup);
}

std::optional<std::int64_t> elements_of(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::int64_t total = 0;
  for (const auto& shape : shapes) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : shape) {
      if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) {
        return std::nullopt;
      }
    }
    if (__builtin_add_overflow(total, elements, &total)) {
      return std::nullopt;
    }
  }
  return total;
}

/// Fills count, shape and dtype where all members must pass equal values. A scatter's input exists
/// only on its root, and extents of an all_to_all may differ: only its sums can be compared.
void add_size(const FlightRecord& record, CollectiveCall& call) {
  const bool by_output = call.operation == "scatter" || call.operation == "recv";
  const auto& shapes = by_output ? record.output_shapes : record.input_shapes;
  const auto& dtypes = by_output ? record.output_dtypes : record.input_dtypes;
  if (!dtypes.empty()) {
    call.dtype = dtype_of(dtypes.front());
  }
  if (kind_of(call.operation).exchanges) {
    if (!record.input_shapes.empty() && !record.output_shapes.empty()) {
      call.sent_elements = elements_of(record.input_shapes);
      call.expected_elements = elements_of(record.output_shapes);
    }
    return;
  }
  if (shapes.empty() || call.operation == "barrier") {
    return;
  }
  call.count = elements_of(shapes);
  if (call.count && shapes.size() == 1) {
    call.shape = shapes.front();
  }
}

/// Converts a group rank to a global rank; they are the same in the world.
std::optional<Rank> global_rank(const ProcessGroup* group, std::optional<Rank> group_rank) {
  if (!group_rank || group == nullptr || group->ranks.empty()) {
    return group != nullptr && group->id == kWorldGroup ? group_rank : std::nullopt;
  }
  const auto index = static_cast<std::size_t>(*group_rank);
  return index < group->ranks.size() ? std::optional(group->ranks[index]) : std::nullopt;
}

CollectiveCall call_of(JobModel& job, Rank rank, const std::string& group,
                       const FlightRecord& record) {
  CollectiveCall call = call_of_record(record);
  call.rank = rank;
  call.group = group;
  call.peer = global_rank(find_group(job, group), call.peer);
  return call;
}

/// `ids` maps this process's names of groups to the job's.
void add_frames(JobModel& job, const TorchWitness& witness,
                const std::map<std::string, std::string>& ids) {
  NewestFrames newest(witness.rank);
  const auto& records = witness.state->records;
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    const auto group = ids.find(group_of(*record, *witness.state));
    const bool message = record->point_to_point || operation_of(record->operation).point_to_point;
    if (group != ids.end() && !message && record->sequence > 0) {
      newest.add(group->second, record->sequence, record->stack);
    }
  }
  std::ranges::move(newest.facts(), std::back_inserter(job.facts));
}

void add_witness(JobModel& job, const TorchWitness& witness) {
  std::map<std::string, std::string> ids;
  for (const TorchGroup& group : witness.state->groups) {
    ids[group.name] = add_group(job, group);
  }
  for (const FlightRecord& record : witness.state->records) {
    if (record.sequence <= 0) {
      continue;
    }
    const std::string name = group_of(record, *witness.state);
    auto known = ids.find(name);
    if (known == ids.end()) {
      const TorchGroup only_recorded = {.name = name,
                                        .description = record.group_description,
                                        .backend = std::string(backend_of(record.operation)),
                                        .ranks = {}};
      known = ids.emplace(name, add_group(job, only_recorded)).first;
    }
    job.collectives.push_back(call_of(job, witness.rank, known->second, record));
  }
  add_frames(job, witness, ids);
}

std::vector<Rank> world(const JobModel& job) {
  return job.world_size ? all_ranks(job).values() : std::vector<Rank>();
}

}  // namespace

CollectiveCall call_of_record(const FlightRecord& record) {
  const Operation operation = operation_of(record.operation);
  CollectiveCall call;
  call.sequence = record.sequence;
  call.point_to_point = record.point_to_point || operation.point_to_point;
  call.operation = operation.name;
  call.peer = operation.peer;
  call.state = record.completed ? CallState::kCompleted
               : record.started ? CallState::kStarted
                                : CallState::kEnqueued;
  if (record.created_ns > 0) {
    call.time = static_cast<double>(record.created_ns) * kNanosecond;
  }
  add_size(record, call);
  std::vector<CallSite> sites;
  for (const stacks::PythonLocation& frame : record.stack) {
    sites.push_back({.file = frame.file, .line = frame.line, .function = frame.function});
  }
  call.callers = user_sites(sites);
  if (!call.callers.empty()) {
    call.call_site = call.callers.front();
  }
  return call;
}

void complete_groups(JobModel& job) {
  std::set<std::string, std::less<>> known;
  for (const ProcessGroup& group : job.groups) {
    known.insert(group.id);
  }
  for (const CollectiveCall& call : job.collectives) {
    if (known.insert(call.group).second) {
      job.groups.push_back({.id = call.group, .name = {}, .backend = {}, .ranks = {}});
    }
  }
  for (ProcessGroup& group : job.groups) {
    const bool is_world =
        group.name == kWorldName || (group.name.empty() && group.id == kWorldGroup);
    if (is_world) {
      group.name = kWorldName;
      group.ranks = group.ranks.empty() ? world(job) : group.ranks;
    } else if (group.name.empty()) {
      group.name = fmt::format("group {}", group.id);
    }
  }
  std::stable_partition(job.groups.begin(), job.groups.end(),
                        [](const ProcessGroup& group) { return group.name == kWorldName; });
}

void add_torch_evidence(JobModel& job, const std::vector<TorchWitness>& witnesses) {
  for (const TorchWitness& witness : witnesses) {
    add_witness(job, witness);
  }
  complete_groups(job);
}

}  // namespace ddpdoctor::model
