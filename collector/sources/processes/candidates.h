// SPDX-License-Identifier: Apache-2.0
// The process table with what find_job asks of it again and again: parents, children, programs and
// rank claims.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collector/sources/processes/process_table.h"
#include "collector/sources/processes/roles.h"

namespace ddpdoctor::sources {

/// A job is a few levels deep; a longer chain is a loop made by pids that were used again while we
/// read.
constexpr int kDeepestTree = 64;

/// Rows by pid; environments are read when somebody first asks for a claim.
class Candidates {
 public:
  explicit Candidates(ProcessTable table);

  [[nodiscard]] const ProcessTable& table() const {
    return table_;
  }
  [[nodiscard]] const ProcessRow* row(pid_t pid) const;
  /// Row with environment, exe and wchan; `pid` must be in the table.
  ProcessRow& completed(pid_t pid);
  [[nodiscard]] const ProcessRow* parent(pid_t pid) const;
  [[nodiscard]] const std::vector<pid_t>& children(pid_t pid) const;  // oldest first
  const RankClaim& claim(pid_t pid);
  Program program(pid_t pid);

  /// The process and everything below it, parents first, at most kDeepestTree levels; our own
  /// process is left out.
  [[nodiscard]] std::vector<pid_t> subtree(pid_t root) const;

  /// Job text of the process, or of the first process below it that has one; empty = unknown.
  std::string job_below(pid_t pid);

  /// Different ranks of `job` below `pid` (not counting itself).
  std::set<int> ranks_below(pid_t pid, const std::string& job);

  /// multiprocessing made `child`, by whatever method.
  bool made_by_multiprocessing(pid_t child);

 private:
  ProcessTable table_;
  std::map<pid_t, std::vector<pid_t>> children_;
  std::map<pid_t, RankClaim> claims_;
};

/// The topmost process that still belongs to the same job as `start`; `start` itself when nothing
/// above it does.
pid_t top_of_job(Candidates& candidates, pid_t start);

/// Roles and ranks for the members (parents before children), from programs, claims and parentage.
std::vector<JobProcess> assign_roles(Candidates& candidates, const std::vector<pid_t>& members);

}  // namespace ddpdoctor::sources
