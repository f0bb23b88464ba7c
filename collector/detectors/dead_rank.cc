// SPDX-License-Identifier: Apache-2.0
// dead-rank: a rank was killed (out of memory, a crash in native code, kill -9) without notice to
// the others: they wait for it in a collective or in the store.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/advice_on_end.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/ended_outside.h"
#include "collector/detectors/evidence/first_to_fail.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/launcher_signal.h"
#include "collector/detectors/evidence/nameless_dead.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/ras_silence.h"
#include "collector/detectors/evidence/ray_actor.h"
#include "collector/detectors/evidence/ray_memory.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/told_kills.h"
#include "collector/detectors/evidence/told_timeouts.h"
#include "collector/detectors/evidence/vanished.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/deaths.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::dead_rank {
namespace {

constexpr std::string_view kKind = "dead-rank";
constexpr std::size_t kLongestLine = 200;

std::map<model::CallSite, model::RankSet> places_of(const graph::Examination& examination,
                                                    const model::RankSet& without) {
  std::map<model::CallSite, model::RankSet> out;
  for (const graph::Standing& standing : examination.standings) {
    if (standing.user.known() && !without.contains(standing.rank)) {
      out[standing.user].insert(standing.rank);
    }
  }
  return out;
}

void add_kernel_lines(const model::JobModel& job, Finding& finding) {
  for (const model::Fact* fact : model::facts(job, "kernel-log")) {
    const std::string about = fact->text("about").value_or("");
    if (about == "oom-kill" || about == "segfault") {
      finding.evidence.push_back(
          {.rank = fact->rank,
           .text = "kernel: " + base::elide(fact->text("text").value_or(about), kLongestLine)});
    }
  }
  for (const model::Fact* fact : model::facts(job, "memory")) {
    if (const auto kills = fact->number("oom_kills"); kills && *kills > 0) {
      finding.evidence.push_back(
          {.rank = fact->rank,
           .text = fmt::format("the memory cgroup {} of the job counted {:.0f} out-of-memory kills",
                               fact->text("cgroup").value_or(""), *kills)});
    }
  }
}

/// Most dead ranks have no stack: the line of the newest recorded call is closest to the rank's
/// end.
void add_last_calls(const model::JobModel& job, Finding& finding) {
  for (const model::Rank rank : finding.culprits) {
    if (const model::Frame* crash = place_of_crash(model::rank_process(job, rank))) {
      finding.locations.push_back(location(model::call_site(*crash), model::RankSet{rank},
                                           fmt::format("rank {} crashed here", rank)));
      continue;
    }
    const model::CollectiveCall* last = nullptr;
    for (const model::CollectiveCall& call : job.collectives) {
      const bool newer = last == nullptr || call.time.value_or(0) >= last->time.value_or(0);
      last = call.rank == rank && call.call_site.known() && newer ? &call : last;
    }
    if (last != nullptr) {
      finding.locations.push_back(
          location(last->call_site, model::RankSet{rank},
                   model::is_over(last->state)
                       ? fmt::format("last call that rank {} finished ({}); it died later", rank,
                                     last->operation)
                       : fmt::format("last call of rank {}: {}", rank, last->operation)));
    }
  }
}

/// The lines of the others if nothing is known about the dead rank: the code that runs without it.
void add_places_of_others(const graph::Examination& examination, Finding& finding) {
  constexpr std::size_t kEnough = 3;
  if (!finding.locations.empty()) {
    return;
  }
  for (const auto& [site, ranks] : places_of(examination, finding.culprits)) {
    if (finding.locations.size() < kEnough) {
      finding.locations.push_back(
          location(site, ranks, fmt::format("{} {} here", said(ranks), is_or_are(ranks))));
    }
  }
}

/// Known only from a log (imports/logs).
std::string_view told_by(const Death& death) {
  return death.process != nullptr && death.process->ppid < 0 ? "launcher: " : "";
}

Finding killed(const graph::Examination& examination, const std::vector<Death>& dead) {
  Finding finding;
  finding.kind = kKind;
  for (const Death& death : dead) {
    finding.culprits.insert(death.rank);
    finding.evidence.push_back({.rank = death.rank,
                                .text = fmt::format("{}rank {} {}{}", told_by(death), death.rank,
                                                    death.exit && death.exit->signal ? "was " : "",
                                                    how_it_ended(death.exit))});
    if (death.process != nullptr || death.pid > 0) {
      finding.details["pid"] =
          static_cast<std::int64_t>(death.process != nullptr ? death.process->pid : death.pid);
    }
    if (death.exit && death.exit->signal) {
      finding.details["signal"] = static_cast<std::int64_t>(*death.exit->signal);
    }
  }
  for (const FeltAnEnd& felt : felt_an_end(examination.job)) {
    if (felt.lost_its_connection && felt.rank && !finding.culprits.contains(*felt.rank)) {
      finding.evidence.push_back(
          {.rank = felt.rank,
           .text = "log: " + base::elide(base::printable(felt.exception), kLongestLine)});
      break;
    }
  }
  add_last_calls(examination.job, finding);
  add_waiting(examination, finding);
  add_places_of_others(examination, finding);
  const bool known = std::any_of(dead.begin(), dead.end(), [](const Death& death) {
    return death.exit && death.exit->signal;
  });
  const bool seen = std::any_of(dead.begin(), dead.end(), [](const Death& death) {
    // Otherwise its launcher reported only a child.
    return death.process != nullptr || death.pid == 0;
  });
  const bool launcher_acted = !model::facts(examination.job, "cleaned-up").empty();
  finding.confidence =
      known && seen && (!finding.waiting.empty() || examination.job.ended || launcher_acted)
          ? Confidence::kCertain
          : Confidence::kLikely;
  const bool one = finding.culprits.size() == 1;
  finding.summary = fmt::format(
      "{} {} {}{}", said(finding.culprits), known ? (one ? "was" : "were") : (one ? "is" : "are"),
      known ? how_it_ended(dead.front().exit) : std::string("dead"), and_who_waits(finding));
  finding.fix = advice_on_end(examination.job, dead.front().exit);
  const bool all_were_ending = std::all_of(dead.begin(), dead.end(), [&](const Death& death) {
    return aborted_while_ending(examination.job, death.rank, death.exit);
  });
  if (all_were_ending) {  // rank-exited reports ranks that left others waiting
    finding.confidence = Confidence::kPossible;
    finding.summary =
        fmt::format("{} aborted during exit; its collectives are complete", said(finding.culprits));
    finding.fix =
        "Call dist.destroy_process_group() on every rank and join the last threads before the "
        "program exits. The work itself was complete.";
  }
  add_kernel_lines(examination.job, finding);
  return finding;
}

/// NCCL's report of a rank without other evidence: given up, or only too late.
std::optional<Finding> given_up_by_ras(const graph::Examination& examination) {
  std::vector<SilentRank> silent = silent_for_ras(examination.job);
  const bool dead = std::any_of(silent.begin(), silent.end(),
                                [](const SilentRank& one) { return one.considered_dead; });
  std::erase_if(silent, [dead](const SilentRank& one) { return one.considered_dead != dead; });
  if (silent.empty()) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = dead ? Confidence::kLikely : Confidence::kPossible;
  for (const SilentRank& one : silent) {
    finding.culprits.insert(one.rank);
    finding.evidence.push_back(
        {.rank = one.rank,
         .text = fmt::format("rank {}: {} {}", one.rank, one.process(),
                             dead ? "is not reachable; NCCL RAS considers it dead"
                                  : "did not answer NCCL RAS in time")});
  }
  add_waiting(examination, finding);
  add_places_of_others(examination, finding);
  const SilentRank& first = silent.front();
  finding.summary = dead ? fmt::format("{} {} dead for NCCL: {} not reachable{}",
                                       said(finding.culprits), is_or_are(finding.culprits),
                                       silent.size() == 1 ? first.process() : "their processes",
                                       and_who_waits(finding))
                         : fmt::format("{} did not answer NCCL RAS", said(finding.culprits));
  const bool one = silent.size() == 1;
  finding.fix = fmt::format(
      "Run `ddpdoctor attach {}` on the node of {}. If the process has exited, read the end of its "
      "log; if the node does not answer, check the machine and its network.",
      one && first.pid ? std::to_string(*first.pid) : "PID", one ? first.process() : "these ranks");
  return finding;
}

/// "a process waited for an actor of Ray …": which one it was.
void name_the_actor(const model::JobModel& job, std::vector<ToldFinding>& all) {
  const auto actor = all.empty() ? std::nullopt : lost_actor(job);
  for (ToldFinding& told : all) {
    if (actor && told.says == Message::kLostByRay) {
      const auto rank = rank_of_actor(job, *actor);
      told.rest += "; it was " + (rank ? fmt::format("rank {}", *rank) : named(*actor));
      if (rank) {
        told.finding.culprits = {*rank};
        told.finding.waiting = told.finding.waiting.minus(told.finding.culprits);
      }
      told.finding.details["pid"] = static_cast<std::int64_t>(actor->pid);
      if (!actor->host.empty()) {
        told.finding.details["host"] = actor->host;
      }
    }
  }
}

/// What messages say of ranks, workers and actors that ended, if no rank is known to be gone.
Findings told_ends(const graph::Examination& examination) {
  std::vector<ToldFinding> all = told_after_timeouts(examination.job, kKind)
                                     ? std::vector<ToldFinding>()
                                     : told_by_text(examination, kKind);
  name_the_actor(examination.job, all);
  Findings told = summarized(std::move(all));
  if (auto killed = told_kills(examination)) {
    told.push_back(std::move(*killed));
  }
  if (auto killed = killed_by_ray(examination)) {
    told.insert(told.begin(), std::move(*killed));  // the lines below only say that it has ended
  }
  for (auto* const others : {ended_from_outside, ended_by_scheduler}) {
    if (auto ended = told.empty() ? others(examination) : std::nullopt) {
      told.push_back(std::move(*ended));
    }
  }
  return told;
}

Findings detect(const graph::Examination& examination) {
  if (const std::vector<Death> dead = deaths(examination); !dead.empty()) {
    return {killed(examination, dead)};
  }
  if (auto finding = given_up_by_ras(examination)) {
    return {std::move(*finding)};
  }
  const model::RankSet gone = vanished(examination);
  if (gone.empty()) {
    return told_ends(examination);
  }
  if (torchrun_watches(examination.job)) {
    return {};  // torchrun would have ended the others: rank-exited reports it
  }
  Finding finding;
  finding.kind = kKind;
  finding.culprits = gone;
  finding.confidence = looked_at_all(examination.job) ? Confidence::kLikely : Confidence::kPossible;
  add_waiting(examination, finding);
  add_places_of_others(examination, finding);
  finding.summary = fmt::format("{} {} no process any more{}", said(gone), has_or_have(gone),
                                and_who_waits(finding));
  finding.fix = advice_on_end(examination.job, std::nullopt);
  finding.evidence.push_back({.rank = {},
                              .text = fmt::format("other ranks have finished the rendezvous, so {} "
                                                  "took part in it",
                                                  said(gone))});
  return {std::move(finding)};
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A rank was killed and the others wait for it",
    .explanation =
        R"(What you see: fewer processes than ranks; the remaining ranks are in a collective or in the store. NCCL and the store do
not notice for minutes.

Why: the out-of-memory killer, a crash in native code, or a person ended the process, and the launcher does not check (mpirun
without clean-up, a shell script with &).

How ddpdoctor knows: from the signal in the process table (a zombie keeps it) or in the agent's record, or because a rank that had
joined the job has no process any more. On other nodes: NCCL's RAS subsystem reports the rank as dead.

Fix: it depends on the signal. SIGKILL: memory. SIGBUS: /dev/shm. SIGSEGV, SIGABRT: a native crash; python -X faulthandler shows it.
    - $ torchrun --nproc_per_node=4 train.py
    + $ PYTHONFAULTHANDLER=1 torchrun --nproc_per_node=4 train.py)",
    .detect = detect,
    .specificity = kPlainFact,
};

}  // namespace ddpdoctor::detectors::dead_rank
