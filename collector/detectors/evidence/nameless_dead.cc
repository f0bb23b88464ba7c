// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/nameless_dead.h"

#include <algorithm>
#include <csignal>
#include <set>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

std::set<pid_t> launchers_of_ranks(const model::JobModel& job) {
  std::set<pid_t> launchers;
  for (const model::Process* process : processes(job)) {
    if (process->role == model::Role::kRank) {
      launchers.insert(process->ppid);
    }
  }
  return launchers;
}

/// Ended processes that were started beside the ranks and have an unknown rank: a zombie has a pid
/// but no environment. A process without a pid comes from incomplete evidence.
std::vector<const model::Process*> nameless_dead(const model::JobModel& job) {
  std::vector<const model::Process*> out = processes(job);
  const std::set<pid_t> launchers = launchers_of_ranks(job);
  std::erase_if(out, [&](const model::Process* process) {
    return alive(*process) || process->rank || process->pid == 0 || was_cleaned_up(job, *process) ||
           !launchers.contains(process->ppid) ||
           (process->role != model::Role::kRank && process->role != model::Role::kOther);
  });
  return out;
}

/// Exits of a program that was not asked to exit; excludes a shell's `yes | head`.
bool was_cut_short(const model::Exit& exit) {
  return crashed(exit) || exit.signal == SIGKILL;
}

/// Children of a launcher of ranks that left only the signal in their parent's record: a rank that
/// dies before its first call has no record. Not while ranks may still be starting.
std::vector<Death> heard_of_only(const graph::Examination& examination) {
  const model::JobModel& job = examination.job;
  if (!job.ended && stuck(examination) != Confidence::kLikely) {
    return {};
  }
  const std::set<pid_t> launchers = launchers_of_ranks(job);
  const auto cleaned = model::facts(job, "cleaned-up");
  std::vector<Death> out;
  for (const model::Fact* fact : model::facts(job, "exit")) {
    const auto parent = pid_field(*fact, "parent_pid");
    const bool asked_to = std::any_of(cleaned.begin(), cleaned.end(), [fact](const auto* one) {
      return one->pid == fact->pid && one->number("signal") == fact->number("signal");
    });
    if (fact->pid && parent && launchers.contains(*parent) && was_cut_short(exit_told_by(*fact)) &&
        !asked_to && !fact->rank && model::process(job, *fact->pid) == nullptr) {
      out.push_back({.exit = exit_told_by(*fact), .pid = *fact->pid});
    }
  }
  return out;
}

}  // namespace

std::vector<Death> absent_and_dead(const graph::Examination& examination) {
  const model::RankSet absent = ranks_where(examination, [](const graph::Standing& standing) {
    return standing.activity == graph::Activity::kAbsent;
  });
  std::vector<Death> out = heard_of_only(examination);
  for (const model::Process* process : nameless_dead(examination.job)) {
    out.push_back(
        {.exit = exit_of(examination.job, *process), .process = process, .pid = process->pid});
  }
  if (out.size() != absent.size()) {
    return {};
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Death& one, const Death& other) { return one.pid < other.pid; });
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].rank = absent.values()[i];
  }
  return out;
}

}  // namespace ddpdoctor::detectors
