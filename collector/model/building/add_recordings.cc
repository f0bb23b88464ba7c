// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/add_recordings.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "collector/model/building/arguments_of_nccl.h"
#include "collector/model/building/child_ends.h"
#include "collector/model/building/compiled_sites.h"
#include "collector/model/building/devices.h"
#include "collector/model/building/ended_ranks.h"
#include "collector/model/building/graph_launches.h"
#include "collector/model/building/other_jobs.h"
#include "collector/model/building/recorded_facts.h"
#include "collector/model/call_frames.h"
#include "collector/model/gpu_calls.h"
#include "collector/model/questions.h"
#include "collector/model/secrets.h"

namespace ddpdoctor::model {
namespace {

using sources::Recording;

/// What all recordings together show about a group: the global rank of each group rank.
struct Membership {
  ProcessGroup group;
  std::map<int, Rank> global;  // group rank → rank
  std::optional<int> size;
  bool whole_world = false;  // a communicator with as many members as the job has ranks
};

/// Torch's name of the group. A torch without names numbers its groups in order of creation, and so
/// do we; if other groups have names, a nameless group must not be taken for one of them.
std::string group_id(const Recording& recording, std::size_t index) {
  const sources::RecordedGroup& group = recording.groups[index];
  if (!group.name.empty()) {
    return group.name;
  }
  const bool others_are_named =
      std::any_of(recording.groups.begin(), recording.groups.end(),
                  [](const sources::RecordedGroup& other) { return !other.name.empty(); });
  return others_are_named ? fmt::format("nameless {}", index) : fmt::format("{}", index);
}

/// Torch creates gloo groups for itself (DETAIL's checks, split groups) in which no call is ever
/// made.
bool is_idle(const sources::RecordedGroup& group) {
  return group.name.empty() && group.enqueued == 0 && group.point_to_point == 0;
}

/// In a group of all ranks, the missing members are known: all others.
void complete_world(Membership& known) {
  RankSet missing;
  for (Rank rank = 0; rank < *known.size; ++rank) {
    missing.insert(rank);
  }
  for (const auto& [group_rank, rank] : known.global) {
    missing.erase(rank);
  }
  auto next = missing.begin();
  for (int group_rank = 0; group_rank < *known.size && next != missing.end(); ++group_rank) {
    if (known.global.emplace(group_rank, *next).second) {
      ++next;
    }
  }
}

std::map<std::string, Membership> memberships(const std::vector<Recording>& recordings) {
  std::map<std::string, Membership> groups;
  for (const Recording& recording : recordings) {
    for (std::size_t i = 0; i < recording.groups.size() && recording.rank; ++i) {
      const sources::RecordedGroup& group = recording.groups[i];
      if (is_idle(group) && recording.groups.size() > 1) {
        continue;
      }
      Membership& known = groups[group_id(recording, i)];
      known.group.id = group_id(recording, i);
      known.group.backend = group.backend;
      known.size = group.size ? group.size : known.size;
      if (group.group_rank) {
        known.global[*group.group_rank] = *recording.rank;
      }
      const bool whole_world = group.size && group.size == recording.world_size;
      if (is_communicator(group)) {
        known.group.name = "communicator 0x" + known.group.id.substr(known.group.id.find(':') + 1);
        known.whole_world = known.whole_world || whole_world;
        continue;
      }
      const bool first = i == 0 || group.name == "0" || group.name == "MPI_COMM_WORLD";
      if (first && known.group.name.empty() && group.size && group.size == recording.world_size) {
        known.group.name = "default_pg";
        for (Rank rank = 0; rank < *group.size; ++rank) {
          known.global[rank] = rank;
        }
      }
    }
  }
  for (auto& [id, known] : groups) {
    if (known.whole_world) {
      complete_world(known);
    }
    known.group.name = known.group.name.empty() ? id : known.group.name;
    if (known.size && static_cast<int>(known.global.size()) == *known.size) {
      for (const auto& [group_rank, rank] : known.global) {
        known.group.ranks.push_back(rank);
      }
    }
  }
  return groups;
}

CallState state_of(sources::RecordedState state) {
  switch (state) {
    case sources::RecordedState::kUnknown:
      return CallState::kUnknown;
    case sources::RecordedState::kEnqueued:
      return CallState::kEnqueued;
    case sources::RecordedState::kStarted:
      return CallState::kStarted;
    case sources::RecordedState::kCompleted:
      return CallState::kCompleted;
    case sources::RecordedState::kFailed:
      return CallState::kFailed;
  }
  return CallState::kUnknown;
}

CollectiveCall call_of(const Recording& recording, const sources::RecordedCall& recorded,
                       const std::map<std::string, Membership>& groups, CompiledSites& compiled) {
  CollectiveCall call;
  call.rank = *recording.rank;
  call.group = group_id(recording, recorded.group);
  call.sequence = recorded.sequence;
  call.point_to_point = recorded.point_to_point;
  call.operation = recorded.operation;
  call.count = recorded.count;
  call.shape = recorded.shape;
  call.dtype = recorded.dtype;
  call.reduce_op = recorded.reduce_op;
  call.splits = recorded.input_splits;
  call.output_splits = recorded.output_splits;
  call.state = state_of(recorded.state);
  call.begun = begun_on_gpu(recorded);
  call.time = recorded.time;
  call.end_time = recorded.end_time;
  call.tag = recorded.tag;
  call.callers = compiled.user_sites(recorded.stack);
  const bool of_mpi =
      recorded.group < recording.groups.size() && recording.groups[recorded.group].backend == "mpi";
  if (of_mpi && recorded.asynchronous && !recorded.point_to_point) {
    call.operation.insert(0, "i");  // such a call matches no blocking one
  }
  call.call_site = call.callers.empty() ? CallSite{} : call.callers.front();
  const auto group = groups.find(call.group);
  if (recorded.peer && group != groups.end()) {
    const auto known = group->second.global.find(*recorded.peer);
    if (known != group->second.global.end()) {
      (recorded.point_to_point ? call.peer : call.root) = known->second;
    }
  }
  return call;
}

void add_groups(JobModel& job, const std::map<std::string, Membership>& groups) {
  for (const auto& [id, known] : groups) {
    const auto there =
        std::find_if(job.groups.begin(), job.groups.end(),
                     [&wanted = id](const ProcessGroup& group) { return group.id == wanted; });
    if (there == job.groups.end()) {
      job.groups.push_back(known.group);
    } else if (there->ranks.empty()) {
      there->ranks = known.group.ranks;
    }
  }
}

void add_calls(JobModel& job, const std::vector<Recording>& recordings,
               const std::map<std::string, Membership>& groups) {
  RankSet recorded;
  for (const Recording& recording : recordings) {
    if (recording.rank && !recording.calls.empty() && !recording.forked) {
      recorded.insert(*recording.rank);
    }
  }
  const bool above = told_above_nccl(job, recorded);
  std::erase_if(job.collectives, [&](const CollectiveCall& call) {
    return recorded.contains(call.rank) && !(above && is_of_nccl(job, call));
  });
  drop_frames(job, recorded);
  CompiledSites compiled;
  std::vector<CollectiveCall> below;
  for (const Recording& recording : recordings) {
    if (!recording.rank || recording.forked) {
      continue;
    }
    std::ranges::move(newest_frames(recording, group_id), std::back_inserter(job.facts));
    const std::vector<bool> hidden = queued_behind_others(recording);
    for (std::size_t i = 0; i < recording.calls.size(); ++i) {
      const sources::RecordedCall& call = recording.calls[i];
      const bool is_below = above && is_communicator(recording.groups[call.group]);
      if (is_below || !hidden[i]) {
        (is_below ? below : job.collectives).push_back(call_of(recording, call, groups, compiled));
      }
    }
  }
  add_arguments_of_nccl(job, below);
}

std::optional<Exit> end_of(const Recording& recording, const std::map<pid_t, Exit>& ends) {
  if (const auto seen = ends.find(recording.pid); seen != ends.end()) {
    return seen->second;
  }
  if (recording.exit && recording.exit->kind == "abort") {
    constexpr int kSigAbrt = 6;
    return Exit{.status = std::nullopt, .signal = kSigAbrt};
  }
  if (recording.exit && recording.exit->kind != "exec") {
    return Exit{.status = recording.exit->value, .signal = std::nullopt};
  }
  return std::nullopt;
}

void add_processes(JobModel& job, const std::vector<Recording>& recordings) {
  if (job.observations.empty()) {
    job.observations.emplace_back();
  }
  const std::map<pid_t, Exit> ends = child_ends(recordings);
  std::vector<Process>& processes = job.observations.back().processes;
  for (const Recording& recording : recordings) {
    const auto there =
        std::find_if(processes.begin(), processes.end(), [&](const Process& process) {
          return process.pid == recording.pid &&
                 (!recording.one_device || !process.rank || process.rank == recording.rank);
        });
    Process added =
        there == processes.end() ? seen_for_another_device(processes, recording) : Process{};
    const bool seen = there != processes.end() || added.pid != 0;
    Process& process = there != processes.end() ? *there : added;
    process.pid = recording.pid;
    process.ppid = process.ppid == 0 ? recording.ppid : process.ppid;
    const bool of_rank = was_its_rank(recording, processes, recordings);
    if (!process.rank && !recording.superseded) {
      process.rank = recording.rank;
    }
    // Lightning starts the other ranks from rank 0: a process that called collectives is not only a
    // launcher.
    const bool launches_only = process.role == Role::kLauncher || process.role == Role::kOther;
    const bool ended = process.state == 'Z';
    if (of_rank && (!recording.calls.empty() || ended) && launches_only) {
      process.role = Role::kRank;
    }
    if (!process.exit) {
      process.exit = end_of(recording, ends);
    }
    if (recording.exit && recording.exit->kind == "abort" && recording.exit->value < 0) {
      job.facts.push_back({.rank = recording.rank,
                           .pid = recording.pid,
                           .kind = "abort",
                           .fields = {{"ending", true}}});
    }
    if (process.python_version.empty()) {
      process.python_version =
          recording.python_version.substr(0, recording.python_version.find(' '));
    }
    if (!seen) {
      const bool other = recording.forked || recording.superseded || recording.rank;
      process.role = of_rank ? Role::kRank : other ? Role::kOther : Role::kLauncher;
      if (process.command.empty() && !recording.command.empty()) {
        process.command = {without_secrets(recording.command)};
      }
      process.state = 'X';
      process.host = job.hosts.size() == 1 ? job.hosts.front() : "";
    }
    if (there == processes.end()) {
      processes.push_back(std::move(added));
    }
  }
  keep_own_threads(processes, recordings);
}

/// Adds the processes that their launcher ended, as opposed to those that failed by themselves.
void add_cleaned_up(JobModel& job, const std::vector<Recording>& recordings) {
  for (Fact& fact : cleaned_up(recordings)) {
    const Process* known = process(job, *fact.pid);
    fact.rank = known == nullptr ? std::nullopt : known->rank;
    job.facts.push_back(std::move(fact));
  }
}

/// A child without a ring of its own is known only by its exit.
void add_ends_of_strangers(JobModel& job, const std::vector<Recording>& recordings) {
  for (const Recording& recording : recordings) {
    for (const auto& [pid, end] : child_ends({recording})) {
      const Process* known = process(job, pid);
      const bool told =
          (known != nullptr && known->exit) ||
          std::any_of(job.facts.begin(), job.facts.end(), [child = pid](const Fact& fact) {
            return fact.kind == "exit" && fact.pid == child;
          });
      if (told) {
        continue;
      }
      Fact fact{.rank = recording.rank,
                .pid = pid,
                .kind = "exit",
                .fields = {{"parent_pid", static_cast<std::int64_t>(recording.pid)},
                           {"role", std::string("other")}}};
      if (end.signal) {
        fact.fields["signal"] = static_cast<std::int64_t>(*end.signal);
      } else {
        fact.fields["status"] = static_cast<std::int64_t>(end.status.value_or(0));
      }
      job.facts.push_back(std::move(fact));
    }
  }
}

/// Calls that a restarted job made before the restart are not part of the current attempt.
std::vector<Recording> without_superseded(const std::vector<Recording>& recordings) {
  std::vector<Recording> out;
  std::copy_if(recordings.begin(), recordings.end(), std::back_inserter(out),
               [](const Recording& recording) { return !recording.superseded; });
  return out;
}

void add_ranks(JobModel& job, const std::vector<Recording>& recordings) {
  const bool restarted = std::any_of(recordings.begin(), recordings.end(),
                                     [](const Recording& one) { return one.superseded; });
  const std::vector<Recording> newest =
      restarted ? without_superseded(recordings) : std::vector<Recording>{};
  const std::vector<Recording>& current = restarted ? newest : recordings;
  const std::map<std::string, Membership> groups = memberships(current);
  add_groups(job, groups);
  add_calls(job, current, groups);
  add_processes(job, recordings);
  add_cleaned_up(job, recordings);
  add_ends_of_strangers(job, recordings);
  add_former_output(job, recordings);
  bool complete = !recordings.empty();
  for (const Recording& recording : current) {
    add_recorded_facts(job, recording);
    job.coverage.events_lost += recording.lost;
    complete = complete && !recording.wrapped && recording.lost == 0;
    if (recording.world_size && !job.world_size) {
      job.world_size = recording.world_size;
    }
    for (const std::string& note : recording.notes) {
      job.coverage.warnings.push_back(fmt::format("pid {}: {}", recording.pid, note));
    }
  }
  for (std::string& sentence : warnings_of_gpus(job, recordings)) {
    job.coverage.warnings.push_back(std::move(sentence));
  }
  add_graph_launches(job);
  job.history_complete = complete;
  if (!recordings.empty()) {
    std::set<pid_t> pids;
    std::ranges::transform(recordings, std::inserter(pids, pids.end()), &Recording::pid);
    job.coverage.observed.push_back(fmt::format("recordings of {} processes", pids.size()));
  }
}

/// What remains of ranks of another job: they have exited and were not reaped.
void leave_out(JobModel& job, const std::set<pid_t>& others) {
  for (Observation& look : job.observations) {
    for (Process& process : look.processes) {
      if (others.contains(process.pid)) {
        process.rank.reset();
        process.role = Role::kOther;
      }
    }
  }
}

}  // namespace

void add_recordings(JobModel& job, const std::vector<Recording>& recordings) {
  if (std::any_of(recordings.begin(), recordings.end(), drives_devices)) {
    add_ranks(job, by_device(recordings));
    return;
  }
  const std::set<pid_t> others = of_other_jobs(job, recordings);
  if (others.empty()) {
    add_ranks(job, recordings);
    return;
  }
  std::vector<Recording> marked = recordings;
  for (Recording& recording : marked) {
    recording.superseded = recording.superseded || others.contains(recording.pid);
  }
  leave_out(job, others);
  add_ranks(job, marked);
}

}  // namespace ddpdoctor::model
