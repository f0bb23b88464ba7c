// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/candidates.h"

#include <algorithm>
#include <tuple>
#include <unistd.h>

namespace ddpdoctor::sources {

Candidates::Candidates(ProcessTable table) : table_(std::move(table)) {
  for (const auto& [pid, row] : table_) {
    if (row.ppid != pid) {
      children_[row.ppid].push_back(pid);
    }
  }
  for (auto& [parent, pids] : children_) {
    std::sort(pids.begin(), pids.end(), [this](pid_t a, pid_t b) {
      return std::tuple(table_.at(a).start_ticks, a) < std::tuple(table_.at(b).start_ticks, b);
    });
  }
}

const ProcessRow* Candidates::row(pid_t pid) const {
  const auto found = table_.find(pid);
  return found == table_.end() ? nullptr : &found->second;
}

ProcessRow& Candidates::completed(pid_t pid) {
  ProcessRow& row = table_.at(pid);
  complete(row);
  return row;
}

const ProcessRow* Candidates::parent(pid_t pid) const {
  const ProcessRow* child = row(pid);
  return child == nullptr ? nullptr : row(child->ppid);
}

const std::vector<pid_t>& Candidates::children(pid_t pid) const {
  static const std::vector<pid_t> kNone;
  const auto found = children_.find(pid);
  return found == children_.end() ? kNone : found->second;
}

const RankClaim& Candidates::claim(pid_t pid) {
  const auto known = claims_.find(pid);
  if (known != claims_.end()) {
    return known->second;
  }
  return claims_
      .emplace(pid, row(pid) == nullptr ? RankClaim{} : rank_claim(completed(pid).environment))
      .first->second;
}

Program Candidates::program(pid_t pid) {
  const ProcessRow* known = row(pid);
  return known == nullptr ? Program::kBoundary : program_of(*known);
}

std::vector<pid_t> Candidates::subtree(pid_t root) const {
  std::vector<pid_t> found;
  std::vector<std::pair<pid_t, int>> open{{root, 0}};
  const pid_t self = ::getpid();
  while (!open.empty()) {
    const auto [pid, depth] = open.back();
    open.pop_back();
    if (pid == self || depth > kDeepestTree) {
      continue;
    }
    found.push_back(pid);
    const auto& below = children(pid);
    for (auto child = below.rbegin(); child != below.rend(); ++child) {
      open.emplace_back(*child, depth + 1);
    }
  }
  return found;
}

std::string Candidates::job_below(pid_t pid) {
  for (const pid_t member : subtree(pid)) {
    const RankClaim& found = claim(member);
    if (found.rank && !found.weak && !found.job.empty() && program(member) != Program::kLauncher) {
      return found.job;
    }
  }
  const RankClaim& own = claim(pid);
  return own.rank ? own.job : std::string();
}

std::set<int> Candidates::ranks_below(pid_t pid, const std::string& job) {
  std::set<int> ranks;
  for (const pid_t member : subtree(pid)) {
    const RankClaim& found = claim(member);
    if (member != pid && found.rank && found.job == job) {
      ranks.insert(*found.rank);
    }
  }
  return ranks;
}

bool Candidates::made_by_multiprocessing(pid_t child) {
  const ProcessRow* above = parent(child);
  if (above == nullptr) {
    return false;
  }
  const Program maker = program(above->pid);
  const Program made = program(child);
  if (made == Program::kForkServer) {
    return maker == Program::kForkServer;
  }
  if (made == Program::kSpawned && (runs_python(maker) || maker == Program::kBoundary)) {
    return true;
  }
  const bool python = runs_python(maker) || maker == Program::kBoundary;
  return python && maker != Program::kForkServer && runs_python(made) &&
         is_fork_of(*row(child), *above);
}

}  // namespace ddpdoctor::sources
