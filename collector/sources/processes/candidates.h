// SPDX-License-Identifier: Apache-2.0
// The process table with the relations that find_job needs repeatedly: parents, children, programs
// and rank claims.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collector/sources/processes/process_table.h"
#include "collector/sources/processes/roles.h"

namespace ddpdoctor::sources {

/// A job has few levels; a longer chain is a loop of pids that were reused during the read.
constexpr int kDeepestTree = 64;

/// Rows by pid; an environment is read when its claim is first needed.
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

  /// The process and everything below it, parents first, at most kDeepestTree levels; without our
  /// own process.
  [[nodiscard]] std::vector<pid_t> subtree(pid_t root) const;

  /// The job text of the process, or of the first process below it that has one; empty = unknown.
  std::string job_below(pid_t pid);

  /// The distinct ranks of `job` below `pid`, without `pid` itself.
  std::set<int> ranks_below(pid_t pid, const std::string& job);

  /// multiprocessing started `child`, with any start method.
  bool made_by_multiprocessing(pid_t child);

 private:
  ProcessTable table_;
  std::map<pid_t, std::vector<pid_t>> children_;
  std::map<pid_t, RankClaim> claims_;
};

/// The topmost process of the same job as `start`; `start` itself if no ancestor belongs to it.
pid_t top_of_job(Candidates& candidates, pid_t start);

/// Roles and ranks of the members (parents before children), from programs, claims and parentage.
std::vector<JobProcess> assign_roles(Candidates& candidates, const std::vector<pid_t>& members);

}  // namespace ddpdoctor::sources
