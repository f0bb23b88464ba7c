// SPDX-License-Identifier: Apache-2.0
// From a rank or worker up to the process that started the job. Climbs only with a reason: a parent
// that is only a shell, a terminal, a CI runner or a test harness is not part of the job.
#include <algorithm>
#include <unistd.h>

#include "collector/sources/processes/candidates.h"

namespace ddpdoctor::sources {

namespace {

bool is_helper(Program program) {
  return program == Program::kResourceTracker || program == Program::kShmManager ||
         program == Program::kForkServer || program == Program::kCompileWorker;
}

/// Lightning starts ranks 1… as children of rank 0, with the same script.
bool same_script(const ProcessRow& child, const ProcessRow& parent) {
  const auto target = python_target(child.command);
  return target && *target != "-c" && target == python_target(parent.command);
}

/// The parent has ranks of this job below it that are not below `child`.
bool starts_more_ranks(Candidates& candidates, pid_t parent, pid_t child) {
  const std::string job = candidates.job_below(child);
  auto below_child = candidates.ranks_below(child, job);
  if (const auto own = candidates.claim(child).rank) {
    below_child.insert(*own);
  }
  return !job.empty() && candidates.ranks_below(parent, job).size() > below_child.size();
}

/// The raylet above its worker, or the program that started its own cluster.
bool is_of_ray(Candidates& candidates, const ProcessRow& child, const ProcessRow& parent) {
  if (candidates.claim(child.pid).raylet == parent.pid) {
    return true;
  }
  const auto& workers = candidates.children(child.pid);
  return runs_python(candidates.program(parent.pid)) &&
         std::any_of(workers.begin(), workers.end(),
                     [&](pid_t worker) { return candidates.claim(worker).raylet == child.pid; });
}

bool parent_belongs(Candidates& candidates, const ProcessRow& child, const ProcessRow& parent) {
  const Program above = candidates.program(parent.pid);
  const Program below = candidates.program(child.pid);
  if (is_of_ray(candidates, child, parent)) {
    return true;
  }
  if (above == Program::kLauncher || above == Program::kSpawned || above == Program::kForkServer) {
    return true;
  }
  if (candidates.made_by_multiprocessing(child.pid) || (is_helper(below) && runs_python(above))) {
    return true;
  }
  if (above == Program::kBoundary || above == Program::kInteractive) {
    return false;
  }
  const RankClaim claim = candidates.claim(child.pid);
  const RankClaim& claim_above = candidates.claim(parent.pid);
  if (claim_above.rank && !claim_above.weak && claim_above.job == claim.job) {
    return true;
  }
  if (above == Program::kPython && below == Program::kPython && claim.rank &&
      same_script(child, parent)) {
    return true;
  }
  return claim.rank && starts_more_ranks(candidates, parent.pid, child.pid);
}

bool has_other_ranks_below(Candidates& candidates, pid_t pid) {
  const RankClaim own = candidates.claim(pid);
  for (const pid_t member : candidates.subtree(pid)) {
    const RankClaim& claim = candidates.claim(member);
    if (member != pid && claim.rank && !claim.weak && (claim.rank != own.rank || own.weak)) {
      return true;
    }
  }
  return false;
}

}  // namespace

pid_t top_of_job(Candidates& candidates, pid_t start) {
  const bool may_be_top = !candidates.made_by_multiprocessing(start);
  if (candidates.program(start) == Program::kLauncher ||
      (may_be_top && has_other_ranks_below(candidates, start))) {
    return start;
  }
  pid_t top = start;
  for (int steps = 0; steps < kDeepestTree; ++steps) {
    const ProcessRow* parent = candidates.parent(top);
    if (parent == nullptr || parent->pid == ::getpid() ||
        !parent_belongs(candidates, *candidates.row(top), *parent)) {
      break;
    }
    top = parent->pid;
  }
  return top;
}

}  // namespace ddpdoctor::sources
