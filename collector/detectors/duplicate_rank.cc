// SPDX-License-Identifier: Apache-2.0
// duplicate-rank: two processes were given the same RANK; another rank is therefore missing, and
// the rendezvous or the first collective never completes.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/announced_twice.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/told_rendezvous.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::duplicate_rank {
namespace {

constexpr std::string_view kKind = "duplicate-rank";

std::string variable(const model::Process& process, const std::string& name) {
  const auto found = process.environment.find(name);
  return found == process.environment.end() ? std::string() : found->second;
}

/// The variable that gave a process its rank; nothing for a function of mp.spawn.
std::optional<std::string> variable_of(const model::Process& process, model::Rank rank) {
  const std::string told = std::to_string(rank);
  for (const std::string name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                 "MV2_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK"}) {
    if (variable(process, name) == told) {
      return name;
    }
  }
  return std::nullopt;
}

/// "was started with RANK=1", "calls itself rank 1".
std::string claim(const model::Process& process, model::Rank rank) {
  const auto name = variable_of(process, rank);
  return name ? fmt::format("was started with {}={}", *name, rank)
              : fmt::format("claims rank {}", rank);
}

/// A child started by the rank (a compiler, a server) inherits RANK; a second rank is not a
/// descendant of the first.
bool descends_from(const model::JobModel& job, const model::Process& process, pid_t ancestor) {
  const model::Process* at = &process;
  for (int step = 0; at != nullptr && step < 64; ++step) {
    if (at->ppid == ancestor) {
      return true;
    }
    at = model::process(job, at->ppid);
  }
  return false;
}

using Processes = std::vector<const model::Process*>;

/// The processes of each rank.
std::map<model::Rank, Processes> processes_by_rank(const model::JobModel& job) {
  std::map<model::Rank, Processes> out;
  for (const model::Process* process : processes(job)) {
    if (process->rank) {
      out[*process->rank].push_back(process);
    }
  }
  return out;
}

Processes claimants(const model::JobModel& job, const Processes& of_rank) {
  Processes out;
  for (const model::Process* process : of_rank) {
    if (process->role != model::Role::kRank || !alive(*process)) {
      continue;
    }
    bool child = false;
    for (const model::Process* other : out) {
      child = child || descends_from(job, *process, other->pid) ||
              variable(*other, "MASTER_PORT") != variable(*process, "MASTER_PORT");
    }
    if (!child) {
      out.push_back(process);
    }
  }
  return out;
}

/// Processes that were started with the RANK of the running one and failed at once because it
/// already uses the rendezvous port.
Processes shut_out(const model::JobModel& job, const Processes& of_rank,
                   const model::Process& living) {
  Processes out;
  for (const model::Process* process : of_rank) {
    const auto exit = exit_of(job, *process);
    if (exit && exit->status.value_or(0) != 0 && process->ppid == living.ppid) {
      out.push_back(process);
    }
  }
  const bool taken = std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    return log.text.find("EADDRINUSE") != std::string::npos;
  });
  return taken ? out : Processes{};
}

/// It polls at the rendezvous, or for what other ranks or its GPU have to do: a host that spins in
/// the driver is waiting, too.
bool waits(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kRendezvous ||
         standing.activity == graph::Activity::kGpu || standing.waits_for_ranks();
}

/// One of them still works, for example on its imports.
bool starts_up(const graph::Examination& examination, const Processes& claimants) {
  const model::JobModel& job = examination.job;
  return job.progress == model::Progress::kMoving ||
         std::any_of(claimants.begin(), claimants.end(), [&](const model::Process* process) {
           const model::Thread* main = model::main_thread(*process);
           return main != nullptr &&
                  (main->state == 'R' || graph::ran_between_looks(job, *process, *main)) &&
                  !waits(graph::standing_of(job, examination.history, *process, *main));
         });
}

/// Another missing rank is the second fact.
Confidence confidence(const graph::Examination& examination, const Processes& claimants,
                      const model::RankSet& missing) {
  if (starts_up(examination, claimants)) {
    return Confidence::kPossible;
  }
  return missing.empty() ? Confidence::kLikely : Confidence::kCertain;
}

/// Only a log is known, in which the ranks announce themselves.
Findings told_by_log(const graph::Examination& examination) {
  const auto told = examination.standings.empty() && examination.history.empty()
                        ? announced_twice(examination.job)
                        : std::nullopt;
  if (!told) {
    return {};
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kLikely;
  finding.culprits = told->twice;
  finding.summary =
      fmt::format("two processes announced themselves as {}, and none as {}",
                  told->twice.size() == 1 ? said(told->twice) : "each of " + said(told->twice),
                  said(told->never));
  finding.evidence.push_back(
      {.rank = std::nullopt,  // the line names it
       .text = "log, twice: " + std::string(base::printable(base::trim(told->line)))});
  finding.fix =
      "Give every process its own rank. With Slurm, set --ntasks-per-node to the processes of a "
      "node; without, set --node-rank (NODE_RANK) on each node.";
  return {std::move(finding)};
}

Findings detect(const graph::Examination& examination) {
  if (Findings told = told_by_log(examination); !told.empty()) {
    return told;
  }
  if (auto surplus = too_many_joined(examination)) {
    return {*std::move(surplus)};
  }
  const model::RankSet missing = ranks_where(examination, [](const graph::Standing& standing) {
    return standing.activity == graph::Activity::kAbsent;
  });
  Findings findings;
  for (const auto& [rank, all] : processes_by_rank(examination.job)) {
    const Processes processes_of_rank = claimants(examination.job, all);
    const Processes gone = processes_of_rank.size() == 1 && !missing.empty()
                               ? shut_out(examination.job, all, *processes_of_rank.front())
                               : Processes{};
    if (processes_of_rank.size() + gone.size() < 2) {
      continue;
    }
    std::vector<Suspect> suspects;
    for (const model::Process* process : processes_of_rank) {
      Suspect suspect = suspect_in(examination, *process, model::main_thread(*process));
      suspect.confidence = confidence(examination, processes_of_rank, missing);
      suspect.evidence = fmt::format("process {} {}", process->pid, claim(*process, rank));
      suspects.push_back(std::move(suspect));
    }
    Finding finding = accuse(examination, kKind, suspects);
    for (const model::Process* process : gone) {
      finding.evidence.push_back(
          {.rank = rank,
           .text = fmt::format("process {} {}, too; it found the rendezvous port in use by that "
                               "process and exited",
                               process->pid, claim(*process, rank))});
    }
    finding.summary = fmt::format(
        "{} processes claim to be rank {}{}", suspects.size() + gone.size(), rank,
        missing.empty()
            ? ""
            : fmt::format(", and {} {} no process", said(missing), has_or_have(missing)));
    const bool by_variable = std::any_of(
        processes_of_rank.begin(), processes_of_rank.end(),
        [rank = rank](const auto* process) { return variable_of(*process, rank).has_value(); });
    finding.fix =
        by_variable ? "Set a different RANK for every process: check --node-rank and the loop that "
                      "starts them."
                    : "Pass a different rank= to init_process_group in every process (mp.spawn on "
                      "several nodes: first rank of the node plus the index).";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Two processes have the same rank",
    .explanation =
        R"(What you see: ranks are in init_process_group or in the first collective; the number of processes is right.

Why: two nodes were started with the same --node-rank, or a script sets RANK wrongly. One rank then exists twice, and a different one
does not exist. Or a different job uses the same port: torch waits for exactly WORLD_SIZE ranks, and more joined.

How ddpdoctor knows: two processes of one rendezvous have the same RANK in their environment. In a log: Lightning announced a rank twice
before the rendezvous, and another rank never; or more ranks joined torch's rendezvous than the world has.

Fix:
    - torchrun --nnodes 2 --node-rank 0 ...     # on the second node
    + torchrun --nnodes 2 --node-rank 1 ...)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::duplicate_rank
