// SPDX-License-Identifier: Apache-2.0
// Corrects roles after the stacks are read: mp.spawn's children have their rank only in their own
// os.environ and in torch's objects, and a forked child may turn out to load data.
#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/path_ends.h"
#include "base/text.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/processes/process_table.h"
#include "collector/sources/processes/roles.h"

namespace ddpdoctor::sources {

namespace {

constexpr int kLargestWorldOfRoles = 1 << 20;

bool loads_data(const stacks::ProcessStacks& process) {
  for (const stacks::ThreadStack& thread : process.threads) {
    for (const stacks::Frame& frame : thread.frames) {
      if (frame.language == stacks::Language::kPython && frame.function == "_worker_loop" &&
          frame.file.ends_with("torch/utils/data/_utils/worker.py")) {
        return true;
      }
    }
  }
  return false;
}

/// A worker of a multiprocessing.Pool or ProcessPoolExecutor: gets its work from a queue and is not
/// a rank.
bool serves_a_pool(const stacks::ProcessStacks& process) {
  for (const stacks::ThreadStack& thread : process.threads) {
    for (const stacks::Frame& frame : thread.frames) {
      const bool python = frame.language == stacks::Language::kPython;
      if ((python && frame.function == "worker" &&
           frame.file.ends_with("multiprocessing/pool.py")) ||
          (python && frame.function == "_process_worker" &&
           frame.file.ends_with("concurrent/futures/process.py"))) {
        return true;
      }
    }
  }
  return false;
}

/// Its Python frames are user code: a child of os.fork or mp.Process, not one that multiprocessing
/// still sets up.
bool runs_something_else(const stacks::ProcessStacks& process) {
  bool python = false;
  bool preparing = false;
  bool started = false;
  for (const stacks::ThreadStack& thread : process.threads) {
    for (const stacks::Frame& frame : thread.frames) {
      const bool main = thread.tid == process.pid && frame.language == stacks::Language::kPython;
      python = python || main;
      preparing = preparing || (main && frame.file.ends_with("multiprocessing/spawn.py"));
      started = started || (main && frame.file.ends_with("multiprocessing/process.py"));
    }
  }
  return python && !loads_data(process) && (started || !preparing);
}

/// Children of a rank that were taken for its DataLoader workers.
void release_other_children(JobTree& job,
                            const std::map<pid_t, const stacks::ProcessStacks*>& by_pid) {
  for (JobProcess& process : job.processes) {
    const auto stacks = by_pid.find(process.row.pid);
    const bool guessed = process.role == JobRole::kDataLoaderWorker && process.role_guessed;
    if (guessed && stacks != by_pid.end() && runs_something_else(*stacks->second)) {
      process.role = JobRole::kOther;
    }
  }
}

JobProcess* find(JobTree& job, pid_t pid) {
  const auto found =
      std::find_if(job.processes.begin(), job.processes.end(),
                   [pid](const JobProcess& process) { return process.row.pid == pid; });
  return found == job.processes.end() ? nullptr : &*found;
}

bool has_child_of_role(const JobTree& job, pid_t parent, JobRole role) {
  return std::any_of(job.processes.begin(), job.processes.end(),
                     [parent, role](const JobProcess& child) {
                       return child.row.ppid == parent && child.role == role;
                     });
}

/// DataLoader workers that were taken for ranks; their parent, taken for a launcher, is then a rank
/// itself.
void demote_data_loaders(JobTree& job,
                         const std::map<pid_t, const stacks::ProcessStacks*>& by_pid) {
  for (JobProcess& process : job.processes) {
    const auto stacks = by_pid.find(process.row.pid);
    const bool doubtful = process.role_guessed || process.role == JobRole::kOther;
    if (!doubtful || stacks == by_pid.end() || !loads_data(*stacks->second)) {
      continue;
    }
    process.role = JobRole::kDataLoaderWorker;
    process.role_guessed = false;
    process.guessed_rank.reset();
    JobProcess* parent = find(job, process.row.ppid);
    if (parent != nullptr && parent->role == JobRole::kLauncher && parent->role_guessed) {
      parent->role = JobRole::kRank;
    }
  }
  for (JobProcess& process : job.processes) {
    if (process.role == JobRole::kRank && process.role_guessed &&
        has_child_of_role(job, process.row.pid, JobRole::kRank)) {
      process.role =
          JobRole::kLauncher;  // some children load data, others are ranks: it started both
      process.guessed_rank.reset();
    }
  }
}

/// RANK in its own os.environ, or a rank known to torch.
bool says_its_rank(const stacks::ProcessStacks& process) {
  return (process.torch && process.torch->rank) ||
         (process.python && rank_claim(process.python->environment).rank);
}

/// Rank and world size from the arguments of its current init_process_group call: before the
/// rendezvous is complete, nothing else shows them for children of mp.spawn or ranks configured on
/// the command line.
RankClaim joins_as(const stacks::ProcessStacks& process) {
  RankClaim claim;
  for (const stacks::ThreadStack& thread : process.threads) {
    for (const stacks::Frame& frame : thread.frames) {
      if (frame.language != stacks::Language::kPython || frame.function != "init_process_group" ||
          !frame.file.ends_with("torch/distributed/distributed_c10d.py")) {
        continue;
      }
      for (const auto& [name, text] : frame.locals) {
        const auto value = number<int>(text);
        if (value && name == "rank" && *value >= 0 && *value < kLargestWorldOfRoles) {
          claim.rank = value;
        } else if (value && name == "world_size" && *value > 0 && *value <= kLargestWorldOfRoles) {
          claim.world_size = value;
        }
      }
      return claim;
    }
  }
  return claim;
}

/// Its main thread waits for children to exit: it will not join them as a rank.
bool joins_children(const stacks::ProcessStacks& process) {
  for (const stacks::ThreadStack& thread : process.threads) {
    const bool waits = thread.tid == process.pid &&
                       std::any_of(thread.frames.begin(), thread.frames.end(), [](const auto& one) {
                         return one.language == stacks::Language::kPython &&
                                one.function.ends_with("join") &&
                                base::path_contains(one.file, base::kMultiprocessing);
                       });
    if (waits) {
      return true;
    }
  }
  return false;
}

/// A process in init_process_group is a rank, whatever its environment says.
void promote_who_joins(JobTree& job, const std::map<pid_t, const stacks::ProcessStacks*>& by_pid) {
  for (JobProcess& process : job.processes) {
    const auto stacks = by_pid.find(process.row.pid);
    const RankClaim claim = stacks == by_pid.end() ? RankClaim{} : joins_as(*stacks->second);
    if (!claim.rank || !claim.world_size || *claim.rank >= *claim.world_size) {
      continue;
    }
    process.role = JobRole::kRank;
    process.role_guessed = false;
    process.rank = claim.rank;
    job.world_size = job.world_size ? job.world_size : claim.world_size;
    JobProcess* parent = find(job, process.row.ppid);
    const auto above = by_pid.find(process.row.ppid);
    if (parent != nullptr && parent->role == JobRole::kRank && !parent->rank &&
        above != by_pid.end() && joins_children(*above->second)) {
      parent->role = JobRole::kLauncher;
    }
  }
}

/// The nearest rank above this process; nullptr if there is none.
const JobProcess* rank_above(JobTree& job, const JobProcess& process) {
  constexpr int kDeepest = 64;
  const JobProcess* above = find(job, process.row.ppid);
  for (int i = 0; above != nullptr && above->role != JobRole::kRank; ++i) {
    above = i < kDeepest ? find(job, above->row.ppid) : nullptr;
  }
  return above;
}

/// Ranks that got their number on the command line and are already in their process group. A fork
/// of such a rank also has the group in its memory.
void promote_members(JobTree& job, const std::map<pid_t, const stacks::ProcessStacks*>& by_pid) {
  for (JobProcess& process : job.processes) {  // parents precede children
    const auto stacks = by_pid.find(process.row.pid);
    const bool member = stacks != by_pid.end() && stacks->second->torch &&
                        stacks->second->torch->rank && *stacks->second->torch->rank >= 0;
    if (member && process.role == JobRole::kOther && rank_above(job, process) == nullptr) {
      process.role = JobRole::kRank;
    }
  }
}

std::size_t guessed_siblings(const JobTree& job, const JobProcess& process) {
  return static_cast<std::size_t>(
      std::count_if(job.processes.begin(), job.processes.end(), [&process](const auto& other) {
        return other.row.ppid == process.row.ppid && other.role == JobRole::kRank;
      }));
}

/// Children that were taken for ranks of mp.spawn: pool workers, and a single fork without any sign
/// of a rank. Their parent is then not a launcher but the only rank.
void demote_helpers(JobTree& job, const std::map<pid_t, const stacks::ProcessStacks*>& by_pid) {
  for (JobProcess& process : job.processes) {
    const auto stacks = by_pid.find(process.row.pid);
    const bool guessed = process.role == JobRole::kRank && process.role_guessed && !process.rank &&
                         process.guessed_rank;
    if (!guessed || stacks == by_pid.end() || says_its_rank(*stacks->second) ||
        !(serves_a_pool(*stacks->second) ||
          (guessed_siblings(job, process) == 1 && runs_something_else(*stacks->second)))) {
      continue;
    }
    process.role = JobRole::kOther;
    process.guessed_rank.reset();
    JobProcess* parent = find(job, process.row.ppid);
    if (parent != nullptr && parent->role == JobRole::kLauncher && parent->role_guessed &&
        !has_child_of_role(job, parent->row.pid, JobRole::kRank)) {
      parent->role = JobRole::kRank;
    }
  }
}

/// What the process itself reports, torch first: a user may set RANK and pass a different rank to
/// init_process_group.
void ask_process(JobTree& job, JobProcess& process, const stacks::ProcessStacks& stacks) {
  RankClaim claim;
  if (stacks.python) {
    claim = rank_claim(stacks.python->environment);
  }
  const bool torch_knows = stacks.torch && stacks.torch->rank && *stacks.torch->rank >= 0;
  if (torch_knows) {
    process.rank = stacks.torch->rank;
  } else if (!process.rank && claim.rank && !claim.weak) {
    process.rank = claim.rank;
  }
  const auto world =
      torch_knows && stacks.torch->world_size ? stacks.torch->world_size : claim.world_size;
  if (process.rank && !job.world_size && world && *world > 0 && *world <= kLargestWorldOfRoles) {
    job.world_size = world;
  }
}

bool runs_torch(const JobProcess& process,
                const std::map<pid_t, const stacks::ProcessStacks*>& by_pid) {
  const auto stacks = by_pid.find(process.row.pid);
  return stacks == by_pid.end() || stacks->second->torch;
}

/// Lightning's first process starts the others and is rank 0 itself: torch shows this, parentage
/// does not.
void promote_first_rank(JobTree& job, const std::map<pid_t, const stacks::ProcessStacks*>& by_pid) {
  for (JobProcess& process : job.processes) {
    const auto stacks = by_pid.find(process.row.pid);
    if (process.role != JobRole::kLauncher || stacks == by_pid.end() || !stacks->second->torch ||
        !stacks->second->torch->rank || !has_child_of_role(job, process.row.pid, JobRole::kRank)) {
      continue;
    }
    const int rank = *stacks->second->torch->rank;
    const bool taken =
        std::any_of(job.processes.begin(), job.processes.end(), [&, rank](const JobProcess& other) {
          return other.role == JobRole::kRank && other.rank == rank && runs_torch(other, by_pid);
        });
    if (!taken && rank >= 0) {
      process.role = JobRole::kRank;
    }
  }
}

/// Programs started by a rank inherit its environment but are not ranks.
void release_programs_of_ranks(JobTree& job) {
  for (JobProcess& process : job.processes) {
    const JobProcess* above = process.role == JobRole::kRank ? rank_above(job, process) : nullptr;
    if (above != nullptr && above->rank && above->rank == process.rank) {
      process.role = JobRole::kOther;
      process.guessed_rank.reset();
    }
  }
}

/// The start order is the rank only if one parent started the whole world: not if a node starts its
/// part, the parent is a rank itself, or two parents count from 0.
void drop_wrong_guesses(JobTree& job) {
  std::map<pid_t, std::size_t> children;  // parent → its children that are ranks
  std::map<pid_t, bool> contradicted;
  std::map<int, int> holders;
  for (const JobProcess& process : job.processes) {
    if (process.role == JobRole::kRank) {
      ++children[process.row.ppid];
      const auto rank = process.rank ? process.rank : process.guessed_rank;
      holders[rank.value_or(-1)] += 1;
      contradicted[process.row.ppid] =
          contradicted[process.row.ppid] ||
          (process.rank && process.guessed_rank && process.rank != process.guessed_rank);
    }
  }
  const std::optional<int> world = job.world_size;
  for (JobProcess& process : job.processes) {
    if (process.role != JobRole::kRank || !process.guessed_rank || process.rank) {
      continue;
    }
    const bool whole = !world || children[process.row.ppid] == static_cast<std::size_t>(*world);
    if (!whole || contradicted[process.row.ppid] || holders[*process.guessed_rank] > 1) {
      process.guessed_rank.reset();
    }
  }
}

/// A rank without a process is missing only if its process would have been found: below the job's
/// launcher or shell, or by a rank in its environment. Ranks with numbers only in torch's memory
/// (Ray's workers, processes without a common parent) do not lead to each other.
bool finds_every_rank(const JobTree& job) {
  const auto named = std::count_if(
      job.processes.begin(), job.processes.end(),
      [](const JobProcess& process) { return process.role == JobRole::kRank && process.rank; });
  return job.launcher != 0 || named > 0 || job.processes.size() > 1;
}

/// Runs last, because Lightning's rank 0 looks like a launcher until torch's state is read.
void note_missing_ranks(JobTree& job) {
  if (job.processes.size() == 1) {
    return;  // one process was requested
  }
  std::vector<int> missing;
  for (const int rank : job.ranks_here) {
    const bool there =
        std::any_of(job.processes.begin(), job.processes.end(), [rank](const auto& process) {
          return process.role == JobRole::kRank && (!process.rank || process.rank == rank);
        });
    if (!there) {
      missing.push_back(rank);
    }
  }
  if (!missing.empty()) {
    job.notes.push_back(fmt::format("rank {} should run on this machine and has no process",
                                    base::ranges(missing)));
  }
}

}  // namespace

void refine_roles(JobTree& job, const std::vector<stacks::ProcessStacks>& stacks) {
  const bool complete = finds_every_rank(job);
  std::map<pid_t, const stacks::ProcessStacks*> by_pid;
  for (const stacks::ProcessStacks& process : stacks) {
    by_pid[process.pid] = &process;
  }
  demote_data_loaders(job, by_pid);
  demote_helpers(job, by_pid);
  release_other_children(job, by_pid);
  promote_first_rank(job, by_pid);
  promote_who_joins(job, by_pid);
  promote_members(job, by_pid);
  for (JobProcess& process : job.processes) {
    const auto found = by_pid.find(process.row.pid);
    if (process.role == JobRole::kRank && found != by_pid.end()) {
      ask_process(job, process, *found->second);
    }
  }
  release_programs_of_ranks(job);
  drop_wrong_guesses(job);
  for (JobProcess& process : job.processes) {  // parents precede children
    const JobProcess* parent = find(job, process.row.ppid);
    const bool serves = process.role != JobRole::kRank && process.role != JobRole::kLauncher;
    if (serves && parent != nullptr && parent->rank) {
      process.rank = parent->rank;
    }
  }
  note_missing_ranks(job);
  if (complete && job.ranks_here.empty() && job.world_size && job.nodes.value_or(1) == 1) {
    for (int rank = 0; rank < *job.world_size; ++rank) {
      job.ranks_here.push_back(rank);
    }
  }
}

}  // namespace ddpdoctor::sources
