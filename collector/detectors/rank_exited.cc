// SPDX-License-Identifier: Apache-2.0
// rank-exited: a rank exited with status 0 while others still call collectives and wait for it.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/finished_agents.h"
#include "collector/detectors/evidence/first_to_fail.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/smaller_world.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/vanished.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/mpi_partings.h"
#include "collector/detectors/partings/swallowed.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/exits.h"

namespace ddpdoctor::detectors::rank_exited {
namespace {

constexpr std::string_view kKind = "rank-exited";

/// Exited successfully by itself: no signal, status 0.
bool left_in_peace(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kExited &&
         (standing.process == nullptr || !standing.process->exit ||
          standing.process->exit->status.value_or(0) == 0);
}

/// It wrote a traceback at its end: rank-raised reports that.
bool printed_a_traceback(const model::JobModel& job, model::Rank rank) {
  return std::any_of(job.logs.begin(), job.logs.end(), [rank](const model::Log& log) {
    return log.rank == rank &&
           log.text.find("Traceback (most recent call last)") != std::string::npos;
  });
}

/// Exited by itself with another status before any group existed: sys.exit("nothing to do").
bool gave_up_before_the_start(const graph::Examination& examination,
                              const graph::Standing& standing) {
  return standing.activity == graph::Activity::kExited && standing.process != nullptr &&
         standing.process->exit && !standing.process->exit->signal &&
         examination.job.collectives.empty() &&
         std::none_of(examination.standings.begin(), examination.standings.end(),
                      [](const graph::Standing& other) {
                        return other.waits_for_ranks() &&
                               other.activity != graph::Activity::kRendezvous;
                      }) &&
         !printed_a_traceback(examination.job, standing.rank);
}

/// The lines that ended ranks, as their agents saw them.
std::vector<Location> recorded_ends(const model::JobModel& job, const model::RankSet& ranks) {
  std::vector<Location> out;
  for (const model::Fact* fact : model::facts(job, "ended-at")) {
    const auto file = fact->text("file");
    if (fact->rank && ranks.contains(*fact->rank) && file) {
      out.push_back(location({*file, static_cast<int>(fact->number("line").value_or(0)),
                              fact->text("function").value_or("")},
                             model::RankSet{*fact->rank}, "exited here"));
    }
  }
  return out;
}

/// How well a condition distinguishes ranks.
int weight_of(program::Dependence dependence) {
  return dependence == program::Dependence::kRank   ? 0
         : dependence == program::Dependence::kData ? 1
                                                    : 2;
}

/// A waiting rank is in the rendezvous: the exited ranks never reached it. Other ranks may have
/// passed it, if they need not wait for all.
const graph::Standing* waits_at_the_start(const graph::Examination& examination,
                                          const Finding& finding) {
  for (const model::Rank rank : finding.waiting) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing != nullptr && standing->activity == graph::Activity::kRendezvous) {
      return standing;
    }
  }
  return nullptr;
}

/// It never reached the line where the others wait: it left through an exit before that line.
std::vector<Location> ways_out(const graph::Examination& examination, const Finding& finding) {
  constexpr std::size_t kEnough = 3;
  std::vector<Location> out;
  const graph::Standing* waits = waits_at_the_start(examination, finding);
  waits = waits == nullptr ? examination.standing(finding.waiting.front()) : waits;
  if (waits == nullptr) {
    return out;
  }
  for (const model::CallSite& site : waits->callers) {
    const auto source = examination.job.sources.find(site.file);
    if (source == examination.job.sources.end()) {
      continue;
    }
    const program::SourceText& lines = source->second;
    auto ways = program::ways_out_before(lines, site.line);
    std::stable_sort(ways.begin(), ways.end(), [&](const auto& a, const auto& b) {
      const auto weight = [&](const program::WayOut& way) {
        return weight_of(dependence_of(examination.job, lines,
                                       {.line = way.line, .text = {}, .condition = way.condition}));
      };
      return weight(a) < weight(b);
    });
    for (const program::WayOut& way : ways) {
      if (out.size() < kEnough) {
        out.push_back(location(
            {site.file, way.line, site.function}, finding.culprits,
            fmt::format("may exit before line {}, in which the others are waiting", site.line)));
      }
    }
  }
  return out;
}

bool has_python(const model::Thread& thread) {
  return model::innermost_python(thread) != nullptr;
}

/// Waits for a semaphore between processes, and nothing in its own process can end that wait.
bool waits_for_a_signal(const model::JobModel& job, const graph::Standing& standing) {
  const model::Thread* main = standing.thread;
  return main != nullptr && main->waits_on && main->waits_on->kind == "semaphore" &&
         std::none_of(standing.process->threads.begin(), standing.process->threads.end(),
                      [&job](const model::Thread& thread) {
                        return has_python(thread) && thread.waits_on && thread.waits_on->limit &&
                               !polls(job, thread);
                      });
}

/// A process that is not a rank and cannot signal it: without Python, or only waiting for another
/// process of the job, or watching the ranks like torch's launchers.
bool only_waits(const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  if (main == nullptr || process.threads.empty()) {
    return false;
  }
  const bool waits = main->waits_on &&
                     (main->waits_on->kind == "process" || main->waits_on->kind == "pipe") &&
                     main->waits_on->target.starts_with("pid:");
  return waits || std::none_of(process.threads.begin(), process.threads.end(), has_python) ||
         python_frame_in(*main, "torch/multiprocessing/spawn.py") != nullptr ||
         python_frame_in(*main, "torch/distributed/elastic/agent/server/api.py") != nullptr;
}

/// All remaining ranks, if each of them waits for a signal that only another process can give and
/// no such process is left, because the running ones wait as well.
model::RankSet wait_for_a_signal(const graph::Examination& examination) {
  model::RankSet waiting;
  for (const graph::Standing& standing : examination.standings) {
    if (standing.activity == graph::Activity::kExited) {
      continue;
    }
    if (!waits_for_a_signal(examination.job, standing)) {
      return {};
    }
    waiting.insert(standing.rank);
  }
  const auto all = processes(examination.job);
  const bool nobody_else = std::all_of(all.begin(), all.end(), [](const model::Process* process) {
    return process->rank || !alive(*process) || only_waits(*process);
  });
  return nobody_else ? waiting : model::RankSet{};
}

std::string search_for_exit(const std::string& who, int status) {
  return fmt::format(
      "Search the code for the exit of {} with status {} (sys.exit, os._exit): an uncaught "
      "exception gives 1. Run the same number of steps on every rank.",
      who, status);
}

/// Exited by itself with a status that no exception causes, and raised nothing.
std::optional<int> status_of_its_own(const model::JobModel& job, model::Rank rank) {
  const model::Process* process = model::rank_process(job, rank);
  const auto exit = process == nullptr ? std::nullopt : exit_of(job, *process);
  const bool own = exit && !exit->signal && exit->status.value_or(0) > 1;
  return own && !printed_a_traceback(job, rank) ? exit->status : std::nullopt;
}

/// The others failed in a call that it had left before, successfully or with a status of its own.
Findings after_the_end(const graph::Examination& examination, model::RankSet left) {
  std::optional<int> status;
  for (const graph::Standing& standing : examination.standings) {
    const auto own = status_of_its_own(examination.job, standing.rank);
    status = own ? own : status;
    left = own ? left.united({standing.rank}) : left;
  }
  for (const Forsaken& forsaken : forsaken_calls(examination)) {
    if (forsaken.missing.common(left).empty()) {
      continue;
    }
    Finding finding;
    finding.kind = kKind;
    finding.culprits = forsaken.missing.common(left);
    finding.waiting = forsaken.ranks;
    finding.confidence = Confidence::kLikely;
    const std::string how = status ? fmt::format(" with status {}", *status) : std::string();
    finding.summary =
        fmt::format("{} exited{} before {} #{}, in which {} then failed", said(finding.culprits),
                    how, forsaken.operation, forsaken.sequence, said(forsaken.ranks));
    for (const model::RankSet* side : {&finding.culprits, &finding.waiting}) {
      const model::CollectiveCall* last = examination.history.last(forsaken.group, side->front());
      if (last != nullptr && last->call_site.known()) {
        finding.locations.push_back(
            location(last->call_site, *side, fmt::format("last call of {}", said(*side))));
      }
    }
    finding.fix = status ? search_for_exit(said(finding.culprits), *status)
                         : "Give every rank the same number of steps (drop_last, "
                           "DistributedSampler, Join), or broadcast that one rank is finished.";
    const model::CollectiveCall* waited =
        examination.history.last(forsaken.group, forsaken.ranks.front());
    if (!status && waited != nullptr) {
      finding.fix += or_swallowed(examination.job, graph::callers_of(*waited)).value_or("");
    }
    return {std::move(finding)};
  }
  return {};
}

/// Python that ended before the snapshot: mpi4py calls MPI_Finalize even after an exception.
bool may_have_raised(const graph::Examination& examination, const model::RankSet& ranks) {
  return examination.job.collectives.empty() &&
         std::all_of(ranks.begin(), ranks.end(), [&examination](model::Rank rank) {
           const graph::Standing* standing = examination.standing(rank);
           return standing != nullptr && standing->thread != nullptr &&
                  std::any_of(
                      standing->thread->frames.begin(), standing->thread->frames.end(),
                      [](const model::Frame& frame) { return frame.function == "Py_FinalizeEx"; });
         });
}

/// It has finished its work like an exited process: what it calls next finalizes MPI.
Finding tell_finalized(const graph::Examination& examination, Finding finding) {
  const graph::Standing* at = examination.standing(finding.culprits.front());
  const std::string where = placed(at->user);
  std::vector<Location> ends = ways_out(examination, finding);
  if (at->user.known()) {
    ends = {
        location(at->user, finding.culprits,
                 ranks_do(finding.culprits, "calls MPI_Finalize here", "call MPI_Finalize here"))};
  }
  finding.locations.insert(finding.locations.begin(), ends.begin(), ends.end());
  const std::string left = may_have_raised(examination, finding.culprits)
                               ? std::string("finished or failed")
                               : std::string("finished");
  finding.summary = fmt::format("{} {} and {} in MPI_Finalize{}{}", said(finding.culprits), left,
                                is_or_are(finding.culprits), where, and_who_waits(finding));
  add_whereabouts(finding, examination, finding.waiting);
  finding.fix =
      "Make every call that the other ranks are waiting in before MPI_Finalize, or remove this "
      "rank from their communicator.";
  if (may_have_raised(examination, finding.culprits)) {
    finding.fix +=
        " An exception in mpi4py has the same effect: read its last output, and start with "
        "`python -m mpi4py`, which then ends the job.";
  }
  return finding;
}

/// Only logs exist: a launcher reports a rank's exit status that no exception causes, or success.
Findings told_by_logs(const graph::Examination& examination) {
  Findings out;
  if (!failed_in_nccl(examination.job, kKind).empty()) {
    return out;  // rank-raised reports why
  }
  const model::RankSet lost = lost_their_connection(felt_an_end(examination.job));
  for (const Failed& failed : failed_without_word(examination)) {
    if (failed.status == 1) {
      continue;  // rank-raised reports it
    }
    Finding& finding = out.emplace_back();
    finding.kind = kKind;
    finding.culprits.insert(failed.rank);
    finding.confidence = failed.sure ? Confidence::kLikely : Confidence::kPossible;
    finding.summary = fmt::format(
        "rank {} exited with status {}{}", failed.rank, failed.status,
        lost.empty() ? std::string() : fmt::format("; {} then lost their connection", said(lost)));
    finding.evidence.push_back(
        {.rank = failed.rank,
         .text = fmt::format("launcher: rank {} exited with status {} and printed no traceback",
                             failed.rank, failed.status)});
    finding.fix = search_for_exit(fmt::format("rank {}", failed.rank), failed.status);
  }
  return out.empty() ? finished_before_others(examination) : out;
}

Findings detect(const graph::Examination& examination) {
  if (Findings told = told_by_logs(examination); !told.empty()) {
    return told;
  }
  Finding finding;
  finding.kind = kKind;
  const model::RankSet gone = gone_under_torchrun(examination);
  finding.culprits = ranks_where(examination, [&](const graph::Standing& standing) {
    return left_in_peace(standing) || gone.contains(standing.rank) ||
           gave_up_before_the_start(examination, standing) ||
           (standing.activity == graph::Activity::kDead && standing.process != nullptr &&
            aborted_while_ending(examination.job, standing.rank,
                                 exit_of(examination.job, *standing.process)));
  });
  std::vector<model::Rank> ends_mpi;
  for (const model::Rank rank : finalized_early(examination)) {
    if (!printed_a_traceback(examination.job, rank)) {  // otherwise rank-raised reports it
      ends_mpi.push_back(rank);
    }
  }
  const model::RankSet in_finalize(std::move(ends_mpi));
  finding.culprits = finding.culprits.united(in_finalize);
  add_waiting(examination, finding);
  const bool for_a_signal = finding.waiting.empty();
  if (for_a_signal && !finding.culprits.empty()) {
    add_waiting(examination, wait_for_a_signal(examination), finding);
  }
  const auto still = stuck(examination);
  if (finding.waiting.empty() && examination.job.ended) {
    return after_the_end(examination, finding.culprits);
  }
  if (finding.culprits.empty() || finding.waiting.empty() || !still) {
    return {};
  }
  const bool at_the_start = waits_at_the_start(examination, finding) != nullptr;
  if (at_the_start && meet_with_two_sizes(examination, finding.waiting, finding.culprits)) {
    return {};  // environment-differs reports it
  }
  std::vector<Location> ends = recorded_ends(examination.job, finding.culprits);
  if (ends.empty() && (at_the_start || !gone.empty())) {
    ends = ways_out(examination, finding);
  }
  finding.locations.insert(finding.locations.begin(), ends.begin(), ends.end());
  // The exit status and the stacks of the waiting ranks: two facts.
  finding.confidence =
      *still == Confidence::kLikely && !for_a_signal ? Confidence::kCertain : *still;
  if (!gone.empty()) {
    constexpr double kRounds = 6;  // seconds: old versions of torchrun check their ranks every five
    const bool has_looked = examination.job.seconds_without_progress.value_or(0) >= kRounds;
    const bool sure = has_looked && looked_at_all(examination.job);
    finding.confidence =
        at_most(finding.confidence, sure ? Confidence::kLikely : Confidence::kPossible);
    finding.evidence.push_back(
        {.rank = gone.front(),
         .text = fmt::format("{} {} no process any more, and torchrun did not end the other "
                             "ranks, as it does after a failure",
                             said(gone), has_or_have(gone))});
  }
  if (!in_finalize.empty() && in_finalize == finding.culprits) {
    return {tell_finalized(examination, std::move(finding))};
  }
  const bool well = ranks_where(examination, left_in_peace).united(gone).common(finding.culprits) ==
                    finding.culprits;
  finding.summary =
      fmt::format("{} {} {}{}{}", said(finding.culprits), has_or_have(finding.culprits),
                  well ? "exited with status 0" : "exited before the others",
                  at_the_start ? " before the rendezvous" : "", and_who_waits(finding));
  add_whereabouts(finding, examination, finding.waiting);
  finding.fix = at_the_start
                    ? "Call init_process_group on every rank, also on one without work; or start "
                      "only as many ranks as there is work for."
                    : "Give every rank the same number of steps (drop_last, DistributedSampler, "
                      "Join), or broadcast that one rank is finished.";
  return {std::move(finding)};
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A rank exited while others wait for it",
    .explanation =
        R"(What you see: one rank has exited with status 0; the others are in a collective.

Why: it ran out of data, returned early, or called sys.exit. Launchers treat status 0 as success and do not end the other ranks.

How ddpdoctor knows: from the exit status of this rank and the stacks of the others. In a log: the launcher reports a status that is
not the one of an exception (in Python, 1), or success while a rank of another log lost its connection.

Fix: run the same number of steps on every rank; see `ddpdoctor explain uneven-inputs`.
    -     if loss.isnan(): sys.exit(0)
    +     bad = torch.tensor([float(loss.isnan())])
    +     dist.all_reduce(bad)
    +     if bad.item() > 0: sys.exit(1)      # all of them)",
    .detect = detect,
    .specificity = kPlainFact,
};

}  // namespace ddpdoctor::detectors::rank_exited
