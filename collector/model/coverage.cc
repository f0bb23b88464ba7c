// SPDX-License-Identifier: Apache-2.0
#include "collector/model/coverage.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

std::string counted(std::size_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

bool has_stack(const Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(),
                     [](const Thread& thread) { return !thread.frames.empty(); });
}

/// "no thread was paused", "3 threads were stopped, for 0.2 ms at most"
std::string pauses(const std::vector<Look>& looks) {
  std::set<std::pair<pid_t, pid_t>> stopped;
  double longest = 0;
  for (const Look& look : looks) {
    for (const stacks::ProcessStacks& process : look.stacks) {
      longest = std::max(longest, process.longest_stop_ms);
      for (const stacks::ThreadStack& thread : process.threads) {
        if (thread.method == stacks::CaptureMethod::kStopped) {
          stopped.emplace(process.pid, thread.tid);
          longest = std::max(longest, thread.stopped_ms);
        }
      }
    }
  }
  if (stopped.empty()) {
    return "no thread was paused";
  }
  return fmt::format("{} stopped, for {:.1f} ms at most",
                     counted(stopped.size(), "thread was", "threads were"), longest);
}

std::string stacks_sentence(const Observation& now, const std::vector<Look>& looks) {
  std::size_t processes = 0;
  std::size_t threads = 0;
  for (const Process& process : now.processes) {
    processes += has_stack(process) ? 1 : 0;
    threads += static_cast<std::size_t>(
        std::count_if(process.threads.begin(), process.threads.end(),
                      [](const Thread& thread) { return !thread.frames.empty(); }));
  }
  return fmt::format("stacks of {}, {}; {}", counted(processes, "process", "processes"),
                     counted(threads, "thread", "threads"), pauses(looks));
}

/// The ranks whose flight recorders were read.
RankSet recorders(const JobModel& job, const Look& look) {
  RankSet out;
  for (const stacks::ProcessStacks& process : look.stacks) {
    const Process* known = model::process(job, process.pid);
    if (process.torch && process.torch->recorder_read && known != nullptr && known->rank) {
      out.insert(*known->rank);
    }
  }
  return out;
}

/// Adds ranks whose process exists but could not be read.
void add_unreadable(const Observation& now, Coverage& out) {
  for (const Process& process : now.processes) {
    const bool over = process.exit || process.state == 'Z' || process.state == 'X';
    if (process.role != Role::kRank || over || has_stack(process)) {
      continue;
    }
    const std::string who = process.rank
                                ? fmt::format("rank {} (pid {})", *process.rank, process.pid)
                                : fmt::format("pid {}", process.pid);
    const std::string why =
        process.problems.empty() ? "no stack could be read" : process.problems.front();
    out.unobserved.push_back(fmt::format("{}: {}", who, why));
    if (process.rank) {
      out.unobserved_ranks.insert(*process.rank);
    }
  }
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "localhost" || address == "::1";
}

/// True if no evidence points to another machine.
bool one_machine(const Observation& now, const sources::JobTree& tree) {
  if (tree.nodes) {
    return *tree.nodes == 1;
  }
  if (tree.world_size && tree.local_world_size) {
    return *tree.world_size == *tree.local_world_size;
  }
  return std::any_of(now.processes.begin(), now.processes.end(), [](const Process& process) {
    const auto master = process.environment.find("MASTER_ADDR");
    return master != process.environment.end() && is_loopback(master->second);
  });
}

/// Adds ranks without a process: those of other machines; ranks of this machine are absent, which
/// is not reported here.
void add_elsewhere(const JobModel& job, const Observation& now, const Look& look, Coverage& out) {
  const RankSet missing = all_ranks(job).minus(ranks_seen(job));
  if (missing.empty() || !job.world_size) {
    return;
  }
  RankSet elsewhere = missing;
  const auto& [one_elsewhere, several_elsewhere, not_found, not_asked] = kReasonsNotHere;
  std::string_view why = not_found;
  if (!look.whole_tree) {
    why = not_asked;
  } else if (!look.tree.ranks_here.empty()) {
    elsewhere = missing.minus(RankSet(look.tree.ranks_here));
    why = elsewhere.size() == 1 ? one_elsewhere : several_elsewhere;
  } else if (one_machine(now, look.tree)) {
    return;
  }
  if (!elsewhere.empty()) {
    out.unobserved.push_back(fmt::format("{}: {}", elsewhere.said(), why));
    out.unobserved_ranks = out.unobserved_ranks.united(elsewhere);
  }
}

/// One sentence for all processes with the same problem.
void add_warnings(const JobModel& job, const Look& look, Coverage& out) {
  std::map<std::string, std::vector<std::string>> who;
  std::vector<std::string> order;
  const auto note = [&](const std::string& problem, const stacks::ProcessStacks& process) {
    if (problem.empty()) {
      return;
    }
    const Process* known = model::process(job, process.pid);
    const bool rank = known != nullptr && known->role == Role::kRank && known->rank;
    auto& list = who[problem];
    if (list.empty()) {
      order.push_back(problem);
    }
    list.push_back(rank ? fmt::format("rank {}", *known->rank)
                        : fmt::format("pid {}", process.pid));
  };
  for (const stacks::ProcessStacks& process : look.stacks) {
    for (const std::string& problem : process.problems) {
      note(problem, process);
    }
    note(process.python ? process.python->problem : std::string(), process);
    note(process.torch ? process.torch->problem : std::string(), process);
  }
  constexpr std::size_t kNamed = 3;
  for (const std::string& problem : order) {
    const auto& list = who[problem];
    std::string names;
    for (std::size_t i = 0; i < std::min(list.size(), kNamed); ++i) {
      names += (i == 0 ? "" : ", ") + list[i];
    }
    if (list.size() > kNamed) {
      names += fmt::format(" and {} more", list.size() - kNamed);
    }
    out.warnings.push_back(fmt::format("{}: {}", names, problem));
  }
  out.warnings.insert(out.warnings.end(), look.tree.notes.begin(), look.tree.notes.end());
}

}  // namespace

Coverage coverage_of(const JobModel& job, const std::vector<Look>& looks) {
  Coverage out;
  const Observation* now = latest(job);
  if (now == nullptr || looks.empty()) {
    return out;
  }
  out.observed.push_back(stacks_sentence(*now, looks));
  const RankSet read = recorders(job, looks.back());
  if (!read.empty()) {
    out.observed.push_back(fmt::format("torch's flight recorder of {}", read.said()));
  }
  add_unreadable(*now, out);
  add_elsewhere(job, *now, looks.back(), out);
  add_warnings(job, looks.back(), out);
  return out;
}

}  // namespace ddpdoctor::model
