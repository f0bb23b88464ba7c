// SPDX-License-Identifier: Apache-2.0
// Roles and ranks of a job's members. RANK in the environment decides most cases, but everything
// below a rank inherits RANK, children of mp.spawn have none, and a zombie has no environment: for
// these, parentage decides.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "collector/sources/processes/candidates.h"

namespace ddpdoctor::sources {

namespace {

/// Assigns roles from parents to children; `by_pid_` points into `found_`, whose size is fixed
/// beforehand.
class Assignment {
 public:
  Assignment(Candidates& candidates, const std::vector<pid_t>& members) : candidates_(candidates) {
    found_.reserve(members.size());
    for (const pid_t pid : members) {
      found_.push_back(JobProcess{.row = candidates.completed(pid),
                                  .role = JobRole::kOther,
                                  .rank = {},
                                  .guessed_rank = {},
                                  .role_guessed = false});
      by_pid_[pid] = &found_.back();
    }
  }

  std::vector<JobProcess> run() {
    for (JobProcess& process : found_) {
      assign(process);
    }
    name_parents_of_ranks();  // a zombie is identified by its parent
    release_programs_of_ranks();
    name_zombies();
    ask_workers_for_ranks();
    guess_ranks();
    return std::move(found_);
  }

 private:
  JobProcess* member(pid_t pid) {
    const auto known = by_pid_.find(pid);
    return known == by_pid_.end() ? nullptr : known->second;
  }

  /// The rank above this process; nullptr if there is none.
  JobProcess* rank_above(const JobProcess& process) {
    JobProcess* above = member(process.row.ppid);
    for (int steps = 0; above != nullptr && steps < kDeepestTree; ++steps) {
      if (above->role == JobRole::kRank) {
        return above;
      }
      above = member(above->row.ppid);
    }
    return nullptr;
  }

  void assign(JobProcess& process) {
    const pid_t pid = process.row.pid;
    const Program program = candidates_.program(pid);
    const RankClaim& claim = candidates_.claim(pid);
    const JobProcess* above = rank_above(process);
    if (above != nullptr) {
      process.rank = above->rank;
    } else if (claim.rank && !claim.weak) {
      process.rank = claim.rank;
    }
    switch (program) {
      case Program::kLauncher:
        process.role = JobRole::kLauncher;
        process.rank.reset();
        return;
      case Program::kResourceTracker:
        process.role = JobRole::kResourceTracker;
        return;
      case Program::kShmManager:
        process.role = JobRole::kShmManager;
        return;
      case Program::kShell:
      case Program::kInteractive:
      case Program::kWrapper:
      case Program::kCompileWorker:
      case Program::kBoundary:
        process.rank = above == nullptr ? std::nullopt : process.rank;
        return;
      case Program::kForkServer:
        if (!candidates_.made_by_multiprocessing(pid)) {
          return;
        }
        break;
      case Program::kOther:
      case Program::kPython:
      case Program::kSpawned:
        break;
    }
    if (process.row.state != 'Z' && process.row.state != 'X') {
      assign_worker_or_rank(process, above, program);
    }
  }

  void assign_worker_or_rank(JobProcess& process, const JobProcess* above, Program program) {
    const pid_t pid = process.row.pid;
    const RankClaim& claim = candidates_.claim(pid);
    const bool own_rank =
        claim.rank && !got_rank_from_python(process) &&
        (above == nullptr || (!claim.weak && claim.local_rank && above->rank != claim.rank));
    const bool data_worker = process.row.comm == kDataLoaderComm;
    if (own_rank && !data_worker && is_rank(pid, program)) {
      process.role = JobRole::kRank;
      process.rank = claim.rank;
    } else if (above != nullptr) {
      const bool made = data_worker || candidates_.made_by_multiprocessing(pid);
      process.role = made ? JobRole::kDataLoaderWorker : JobRole::kOther;
      process.role_guessed = made && !data_worker;
    } else if (data_worker) {
      process.role = JobRole::kDataLoaderWorker;
    } else if (candidates_.made_by_multiprocessing(pid)) {
      process.role = JobRole::kRank;  // for mp.spawn; refine_roles changes it if the process turns
                                      // out to load data
      process.role_guessed = true;
    }
  }

  /// MPI's rank variable that first appears below a Python program was set by that program:
  /// importing mpi4py calls MPI_Init, which without mpirun sets PMIX_RANK=0 for all children.
  bool got_rank_from_python(const JobProcess& process) {
    if (!candidates_.claim(process.row.pid).weak) {
      return false;
    }
    const JobProcess* above = member(process.row.ppid);
    for (int steps = 0; above != nullptr && steps < kDeepestTree; ++steps) {
      const Program program = candidates_.program(above->row.pid);
      if (runs_python(program) || program == Program::kLauncher) {
        return program != Program::kLauncher && !candidates_.claim(above->row.pid).rank;
      }
      above = member(above->row.ppid);
    }
    return false;
  }

  /// A process with a rank in its environment: whether it is the rank, or only starts it.
  bool is_rank(pid_t pid, Program program) {
    const RankClaim claim = candidates_.claim(pid);
    for (const pid_t below : candidates_.subtree(pid)) {
      if (below == pid) {
        continue;
      }
      const RankClaim& other = candidates_.claim(below);
      if (claim.weak && other.rank && !other.weak) {
        return false;  // the batch system's label on a process that starts the real ranks
      }
      if (!runs_python(program) && runs_python(candidates_.program(below)) &&
          other.rank == claim.rank) {
        // Numactl, a profiler or a user's wrapper: the interpreter below it is the rank.
        return false;
      }
    }
    return true;
  }

  /// A zombie has lost its environment and command line: its parent shows its role, its siblings
  /// its rank.
  void name_zombies() {
    for (JobProcess& zombie : found_) {
      const JobProcess* parent = member(zombie.row.ppid);
      if (zombie.row.state != 'Z' || parent == nullptr) {
        continue;
      }
      if (parent->role == JobRole::kLauncher) {
        zombie.role = JobRole::kRank;
        zombie.role_guessed = true;
        zombie.rank = rank_among_siblings(zombie, parent->row.pid);
      } else if (parent->role == JobRole::kRank) {
        const bool worker =
            zombie.row.comm == kDataLoaderComm || zombie.row.comm == parent->row.comm;
        zombie.role = worker ? JobRole::kDataLoaderWorker : JobRole::kOther;
        zombie.role_guessed = true;
        zombie.rank = parent->rank;
      }
    }
  }

  /// Launchers start local ranks in order: if all of them are still listed, the position among the
  /// siblings is the rank. A user's own launcher may start all ranks with only RANK and WORLD_SIZE.
  std::optional<int> rank_among_siblings(const JobProcess& zombie, pid_t launcher) {
    std::vector<const JobProcess*> siblings;
    std::optional<int> base;
    std::optional<int> expected;
    for (const pid_t pid : candidates_.children(launcher)) {
      const JobProcess* sibling = member(pid);
      if (sibling == nullptr || (sibling->role != JobRole::kRank && sibling->row.state != 'Z')) {
        continue;
      }
      siblings.push_back(sibling);
      const RankClaim& claim = candidates_.claim(pid);
      if (claim.rank && claim.local_rank) {
        base = *claim.rank - *claim.local_rank;
        expected = claim.local_world_size;
      } else if (claim.rank == static_cast<int>(siblings.size()) - 1 && !claim.local_world_size) {
        base = 0;
        expected = claim.world_size;
      } else if (claim.rank) {
        return std::nullopt;  // not in order
      }
    }
    if (!base || !expected || siblings.size() != static_cast<std::size_t>(*expected)) {
      return std::nullopt;
    }
    const auto place = std::find(siblings.begin(), siblings.end(), &zombie) - siblings.begin();
    return *base + static_cast<int>(place);
  }

  /// A process that started ranks is a launcher even if its name does not show it; Lightning's rank
  /// 0 is both launcher and rank.
  void name_parents_of_ranks() {
    for (JobProcess& parent : found_) {
      const Program program = candidates_.program(parent.row.pid);
      if (parent.role != JobRole::kOther ||
          !(program == Program::kPython || program == Program::kBoundary) || parent.rank) {
        continue;
      }
      const auto ranks = direct_ranks(parent);
      const bool loads_data =
          std::any_of(found_.begin(), found_.end(), [&parent](const JobProcess& child) {
            return child.row.ppid == parent.row.pid && child.role == JobRole::kDataLoaderWorker;
          });
      if (ranks.empty() && loads_data && program == Program::kPython) {
        parent.role = JobRole::kRank;  // a job with one process
        parent.role_guessed = true;
      } else if (!ranks.empty()) {
        const bool local_only = is_rank_zero(parent, ranks);
        parent.role = local_only ? JobRole::kRank : JobRole::kLauncher;
        parent.role_guessed = true;
        parent.rank = local_only ? std::optional(0) : std::nullopt;
      }
    }
  }

  /// Lightning's first process: it ran its own script again for the other ranks. Its other children
  /// (a compressor, an uploader) also have its rank in their environment.
  bool is_rank_zero(const JobProcess& parent, const std::vector<const JobProcess*>& ranks) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [this](const JobProcess* rank) { return started_by_rank_zero(*rank); }) &&
           std::all_of(ranks.begin(), ranks.end(), [&](const JobProcess* rank) {
             return started_by_rank_zero(*rank) ||
                    (rank->rank == 0 && !runs_same_script(*rank, parent));
           });
  }

  /// Programs below a rank that was recognized only after they were named: they inherited its rank.
  void release_programs_of_ranks() {
    for (JobProcess& process : found_) {
      const JobProcess* above = process.role == JobRole::kRank ? rank_above(process) : nullptr;
      if (above != nullptr && above->rank && above->rank == process.rank) {
        process.role = JobRole::kOther;
      }
    }
  }

  std::vector<const JobProcess*> direct_ranks(const JobProcess& parent) {
    std::vector<const JobProcess*> ranks;
    for (const JobProcess& child : found_) {
      const JobProcess* above = member(child.row.ppid);
      const bool through_server = above != nullptr &&
                                  candidates_.program(above->row.pid) == Program::kForkServer &&
                                  above->row.ppid == parent.row.pid;
      if (child.role == JobRole::kRank && (child.row.ppid == parent.row.pid || through_server)) {
        ranks.push_back(&child);
      }
    }
    return ranks;
  }

  /// Compares names only, because the parent may have been given a different path.
  static bool runs_same_script(const JobProcess& one, const JobProcess& other) {
    const auto name = [](const JobProcess& process) {
      const std::string target = python_target(process.row.command).value_or("");
      return target.substr(target.rfind('/') + 1);
    };
    return !name(one).empty() && name(one) == name(other);
  }

  /// LOCAL_RANK ≥ 1 without RANK, started from the same script: the parent is rank 0.
  bool started_by_rank_zero(const JobProcess& rank) {
    const JobProcess* parent = member(rank.row.ppid);
    return parent != nullptr && rank.rank.value_or(0) > 0 &&
           !rank.row.environment.contains("RANK") && rank.row.environment.contains("LOCAL_RANK") &&
           runs_same_script(rank, *parent);
  }

  /// A rank of mp.spawn sets RANK in its own os.environ; its workers started with spawn inherit it.
  void ask_workers_for_ranks() {
    for (const JobProcess& worker : found_) {
      JobProcess* above = worker.role == JobRole::kDataLoaderWorker ? rank_above(worker) : nullptr;
      const RankClaim& claim = candidates_.claim(worker.row.pid);
      if (above != nullptr && !above->rank && claim.rank && !claim.weak) {
        above->rank = claim.rank;
      }
    }
    for (JobProcess& worker : found_) {
      const JobProcess* above = worker.role == JobRole::kRank ? nullptr : rank_above(worker);
      if (above != nullptr) {
        worker.rank = above->rank;
      }
    }
  }

  /// mp.spawn starts ranks in order: the position among the siblings is a guess until Python's own
  /// environment is read.
  void guess_ranks() {
    std::map<pid_t, std::vector<JobProcess*>> by_parent;
    for (JobProcess& process : found_) {
      if (process.role == JobRole::kRank && process.role_guessed && !process.rank) {
        by_parent[process.row.ppid].push_back(&process);
      }
    }
    for (auto& [parent, children] : by_parent) {
      std::sort(children.begin(), children.end(), [](const JobProcess* a, const JobProcess* b) {
        return std::tuple(a->row.start_ticks, a->row.pid) <
               std::tuple(b->row.start_ticks, b->row.pid);
      });
      for (std::size_t i = 0; i < children.size(); ++i) {
        children[i]->guessed_rank = static_cast<int>(i);
      }
    }
  }

  Candidates& candidates_;
  std::vector<JobProcess> found_;
  std::map<pid_t, JobProcess*> by_pid_;
};

}  // namespace

std::vector<JobProcess> assign_roles(Candidates& candidates, const std::vector<pid_t>& members) {
  return Assignment(candidates, members).run();
}

}  // namespace ddpdoctor::sources
