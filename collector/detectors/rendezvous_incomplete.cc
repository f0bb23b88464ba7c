// SPDX-License-Identifier: Apache-2.0
// rendezvous-incomplete: fewer processes than WORLD_SIZE reached init_process_group(); those that
// did wait in the store for the rest. A node was not started, a rank died before the rendezvous, or
// WORLD_SIZE is too large.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/nameless_dead.h"
#include "collector/detectors/evidence/polls_outside_rendezvous.h"
#include "collector/detectors/evidence/port_holder.h"
#include "collector/detectors/evidence/rendezvous_places.h"
#include "collector/detectors/evidence/roll_calls.h"
#include "collector/detectors/evidence/singletons.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/told_rendezvous.h"
#include "collector/detectors/evidence/vanished.h"
#include "collector/detectors/evidence/waiting_nodes.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::rendezvous_incomplete {
namespace {

using enum graph::Activity;

constexpr std::string_view kKind = "rendezvous-incomplete";

model::RankSet ranks_in(const graph::Examination& examination, graph::Activity activity) {
  return ranks_where(examination, [activity](const graph::Standing& standing) {
    return standing.activity == activity;
  });
}

/// In a call that they can only make after the rendezvous.
model::RankSet past_it(const graph::Examination& examination) {
  return ranks_where(examination, [](const graph::Standing& standing) {
    return standing.waits_for_ranks() && standing.activity != kRendezvous &&
           standing.activity != kStore;
  });
}

bool is_complete(const graph::Examination& examination) {
  return !is_rendezvous_open(examination) &&
         (!past_it(examination).empty() || !examination.job.collectives.empty());
}

/// LOCAL_WORLD_SIZE is below WORLD_SIZE: the others may be on unobserved nodes.
bool spans_nodes(const model::JobModel& job) {
  const model::Observation* now = model::latest(job);
  if (now == nullptr) {
    return false;
  }
  return std::any_of(now->processes.begin(), now->processes.end(),
                     [](const model::Process& process) {
                       const auto local = process.environment.find("LOCAL_WORLD_SIZE");
                       const auto world = process.environment.find("WORLD_SIZE");
                       return local != process.environment.end() &&
                              world != process.environment.end() && local->second != world->second;
                     });
}

/// Killed while starting: dead-rank reports it.
model::RankSet who_died(const graph::Examination& examination) {
  model::RankSet out;
  for (const Death& death : absent_and_dead(examination)) {
    if (death.exit && death.exit->signal) {
      out.insert(death.rank);
    }
  }
  return out;
}

/// Ranks were given different world sizes: environment-differs reports it.
bool count_differently(const model::JobModel& job) {
  std::set<std::string> worlds;
  for (const model::Rank rank : model::ranks_seen(job)) {
    const model::Process* process = model::rank_process(job, rank);
    if (process != nullptr && process->environment.contains("WORLD_SIZE")) {
      worlds.insert(process->environment.at("WORLD_SIZE"));
    }
  }
  return worlds.size() > 1;
}

Findings detect(const graph::Examination& examination) {
  if (auto told = roll_call_missed(examination, kKind, Meeting::kFirst);
      told && examination.standings.empty()) {
    return {std::move(*told)};
  }
  if (Findings nodes = waiting_nodes(examination);
      !nodes.empty() && examination.standings.empty()) {
    return nodes;
  }
  if (auto alone = examination.standings.empty() ? singletons(examination.job, kKind)
                                                 : std::optional<Finding>()) {
    return {std::move(*alone)};
  }
  const model::RankSet arrived = ranks_in(examination, kRendezvous);
  const model::RankSet absent = ranks_in(examination, kAbsent).minus(who_died(examination));
  const auto still = stuck(examination);
  if (still && !arrived.empty() && absent.empty()) {
    if (Findings apart = rendezvous_places(examination, *still); !apart.empty()) {
      return apart;
    }
  }
  if (!arrived.empty() && absent.empty() && who_died(examination).empty()) {
    if (auto apart = polls_outside_rendezvous(examination, arrived)) {
      return {std::move(*apart)};
    }
  }
  if (arrived.empty() || absent.empty() || !still || is_complete(examination) ||
      count_differently(examination.job) || stranger_holds_port(examination.job)) {
    return rendezvous_told_by_logs(examination);
  }
  Finding finding;
  finding.kind = kKind;
  finding.culprits = absent;
  const bool seen_all = ranks_in(examination, kUnobserved).empty() && !spans_nodes(examination.job);
  finding.confidence = still != Confidence::kLikely ? Confidence::kPossible
                       : seen_all                   ? Confidence::kCertain
                                                    : Confidence::kPossible;
  finding.confidence = unless_somebody_acts(examination, finding.confidence);
  add_waiting(examination, finding);
  const model::RankSet came = arrived.united(past_it(examination));
  const std::size_t world = came.size() + absent.size();
  finding.summary =
      fmt::format("{} of {} ranks reached the rendezvous; {} {} no process", came.size(),
                  std::max<std::size_t>(
                      world, static_cast<std::size_t>(examination.job.world_size.value_or(0))),
                  said(absent), has_or_have(absent));
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text = fmt::format("the processes of the job expect {} ranks; no process is {}",
                           examination.job.world_size.value_or(static_cast<int>(world)),
                           said(absent))});
  add_whereabouts(finding, examination, came);
  const bool one = absent.size() == 1;
  finding.fix = fmt::format(
      "Start {}, or set WORLD_SIZE (--nproc-per-node, --nnodes) to the number of processes. If you "
      "started {}, {} output shows why {} exited.",
      said(absent), one ? "it" : "them", one ? "its" : "their", one ? "it" : "they");
  return {std::move(finding)};
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Not all ranks reached the rendezvous",
    .explanation =
        R"(What you see: every started rank is in init_process_group (TCPStore, _store_based_barrier) until the timeout. Over NCCL, rank 0 is
there, and the others may already be in their first call.

Why: WORLD_SIZE counts more ranks than were started: a node is missing, a process died before it got there, or --nnodes is too large.

How ddpdoctor knows: some ranks of the world size have no process, others are in the rendezvous, and no call has completed. Before
torchrun has started ranks: torchrun itself waits for other nodes (--nnodes), or its agents got different --rdzv-id or endpoints. Or
init_process_group got different addresses or files. In logs, it compares the number of joined ranks with the world size; or MPI
says that it found no server of its launcher, or several processes of one command print that they are rank 0 of 1: each is alone.

Fix:
    - torchrun --nnodes 2 train.py
    + torchrun --nnodes 1 train.py          # or start the second node)",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::rendezvous_incomplete
