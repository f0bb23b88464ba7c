// SPDX-License-Identifier: Apache-2.0
// One rank works (saves, tokenizes, compiles a data set) while the others wait for it in a barrier:
// slow, not hung.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/awaited_main.h"
#include "collector/detectors/evidence/may_spin.h"
#include "collector/detectors/evidence/past_the_call.h"
#include "collector/detectors/evidence/told_timeouts.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/work_in_log.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/graph/history.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::long_phase {
namespace {

using graph::Activity;
using graph::Standing;

bool works(const Standing& standing) {
  const bool read = standing.thread != nullptr && !standing.thread->frames.empty();
  return read && !standing.waits_for_ranks() && standing.activity != Activity::kCompiling &&
         standing.activity != Activity::kExit && !may_spin(standing) &&
         (standing.on_cpu || standing.moved || standing.activity == Activity::kSaving);
}

constexpr double kMoment = 1;  // second

/// Some rank made a call a moment ago: a normal step of a job that continues.
bool one_just_called(const graph::Examination& examination) {
  const model::Observation* now = model::latest(examination.job);
  const auto& calls = examination.job.collectives;
  return now != nullptr && std::any_of(calls.begin(), calls.end(), [now](const auto& call) {
           return call.time && *call.time <= now->time && now->time - *call.time < kMoment;
         });
}

/// All waiting ranks reached their call a moment ago: a normal step.
bool all_just_came(const graph::Examination& examination, const model::RankSet& waiting) {
  const model::Observation* now = model::latest(examination.job);
  return now != nullptr && std::all_of(waiting.begin(), waiting.end(), [&](model::Rank rank) {
           const Standing* standing = examination.standing(rank);
           const auto& call = standing->call;
           const model::CollectiveCall* recorded =
               call && call->sequence ? examination.history.at(call->group, rank, *call->sequence)
                                      : nullptr;
           return recorded != nullptr && recorded->time && now->time - *recorded->time < kMoment;
         });
}

/// Stacks alone do not show that the call is still to come.
void tell_past_the_call(const PastTheCall& past, std::string_view where, Finding& finding) {
  const model::RankSet& working = finding.culprits;
  finding.summary = fmt::format(
      "{} {} at work ({}) after the line where {} wait{} {}; {} may have "
      "passed that call",
      said(working), is_or_are(working), place(past.rank), said(finding.waiting),
      finding.waiting.size() == 1 ? "s" : "", where, said(working));
  finding.evidence.push_back({.rank = working.front(),
                              .text = fmt::format("{} is after {}, the line of the call",
                                                  line_of(past.rank), line_of(past.waiting))});
  finding.fix = fmt::format(
      "Run `ddpdoctor attach PID` on the launcher: the recorded calls show whether {} passed it.",
      said(working));
}

/// Only a log is known: another process was at work until a timeout ended the wait.
Findings moved_while_others_waited(const graph::Examination& examination) {
  const auto work = work_in_log(examination);
  if (!work) {
    return {};
  }
  Finding finding;
  finding.kind = "long-phase";
  finding.confidence = Confidence::kLikely;
  finding.waiting = work->waiting;
  if (work->rank) {
    finding.culprits.insert(*work->rank);
  }
  const std::string whom =
      work->rank ? fmt::format("rank {}", *work->rank) : std::string("a different rank");
  const std::string late =
      fmt::format("when {} timed out in {}", said(work->waiting), work->operation);
  finding.summary = work->seen ? fmt::format("{} was still at work ({}) {}", whom, work->what, late)
                               : fmt::format("{} probably still did what it announced (`{}`) {}",
                                             whom, work->what, late);
  const graph::Standing* waits = examination.standing(work->waiting.front());
  if (waits != nullptr && waits->user.known()) {
    finding.locations.push_back(
        location(waits->user, work->waiting, waiting_here(examination.job, work->waiting)));
  }
  finding.evidence.push_back({.rank = work->rank, .text = work->evidence});
  const ToldTimeouts told = told_timeouts(examination.job);
  finding.evidence.insert(finding.evidence.end(), told.evidence.begin(), told.evidence.end());
  finding.fix =
      "Pass a longer timeout to init_process_group, share this work between the ranks, or do it "
      "before the job.";
  return {std::move(finding)};
}

/// Only a log is known: ranks timed out while the main process was inside the block that it enters
/// first.
Findings inside_while_others_waited(const graph::Examination& examination) {
  const auto awaited = awaited_main(examination.job);
  if (!awaited) {
    return {};
  }
  const model::Fact* bar = nullptr;
  for (const char* const kind : {"unfinished-bar", "progress-bar"}) {
    const auto bars = model::facts(examination.job, kind);
    bar = bars.empty() ? bar : bars.front();
  }
  if (bar == nullptr && !awaited->inside) {
    return {};
  }
  Finding finding;
  finding.kind = "long-phase";
  finding.confidence = bar != nullptr ? Confidence::kLikely : Confidence::kPossible;
  finding.waiting = awaited->waiting;
  if (awaited->one_host) {
    finding.culprits.insert(0);
  }
  constexpr std::size_t kLongestBar = 40;
  const std::string count =
      bar == nullptr
          ? std::string()
          : fmt::format(" ({}: {} of {})",
                        base::elide(bar->text("text").value_or("progress bar"), kLongestBar),
                        bar->text("done").value_or("?"), bar->text("total").value_or("?"));
  const std::string whom = awaited->one_host ? "rank 0" : "the main process";
  const std::string late =
      awaited->waiting.empty() ? std::string("a different rank") : said(awaited->waiting);
  finding.summary =
      awaited->inside ? fmt::format("{} was still inside `{}`{} when {} timed out at its entry",
                                    whom, awaited->function, count, late)
                      : fmt::format("{} was still at work{} when {} timed out at the entry of `{}`",
                                    whom, count, late, awaited->function);
  if (awaited->place.known()) {
    finding.locations.push_back(location(awaited->place, awaited->waiting,
                                         awaited->waiting.empty()
                                             ? std::string("a rank waited here")
                                             : said(awaited->waiting) + " waited here"));
  }
  constexpr std::size_t kLongestQuote = 240;
  finding.evidence.push_back(
      {.rank = awaited->waiting.empty() ? std::nullopt : std::optional(awaited->waiting.front()),
       .text = "log: " + base::elide(base::printable(awaited->exception), kLongestQuote)});
  finding.fix =
      "Pass a longer timeout: ddp_timeout of TrainingArguments, InitProcessGroupKwargs of "
      "accelerate, or the timeout of init_process_group. Or process the data once before the job.";
  return {std::move(finding)};
}

/// Both sides are at one line of the user: adds where they diverge in a library.
void tell_fork_in_library(const Standing& works, const Standing& waits, Finding& finding) {
  const bool one_line = works.user.known() && graph::same_line(works.user, waits.user);
  const auto fork = one_line && waits.thread != nullptr
                        ? fork_of(python_path(*works.thread), python_path(*waits.thread))
                        : std::nullopt;
  if (fork) {
    finding.locations.push_back(
        location(fork->ours, finding.culprits,
                 fmt::format("{} {} here", said(finding.culprits), is_or_are(finding.culprits))));
    finding.locations.push_back(
        location(fork->theirs, finding.waiting,
                 fmt::format("{} {} here", said(finding.waiting), is_or_are(finding.waiting))));
  }
}

Findings detect(const graph::Examination& examination) {
  const model::RankSet waiting = waiting_ranks(examination);
  const model::RankSet working = ranks_where(examination, works);
  if (working.empty()) {
    Findings inside = inside_while_others_waited(examination);
    return inside.empty() ? moved_while_others_waited(examination) : inside;
  }
  // A dump that shows one rank wait for its GPU does not show what that GPU waits for.
  const bool for_gpus = std::all_of(waiting.begin(), waiting.end(), [&](model::Rank rank) {
    const Standing* one = examination.standing(rank);
    return one->activity == Activity::kGpu && one->process != nullptr &&
           model::was_dumped(*one->process);
  });
  if (for_gpus) {
    return {};
  }
  // All others wait: otherwise this is a step of a running job.
  const bool all_told = waiting.size() + working.size() == examination.standings.size();
  if (waiting.empty() || working.empty() || !all_told || working.size() >= waiting.size() + 1 ||
      all_just_came(examination, waiting) || one_just_called(examination)) {
    return {};
  }
  Finding finding;
  finding.kind = "long-phase";
  finding.confidence = Confidence::kPossible;
  finding.culprits = working;
  finding.waiting = waiting;
  const Standing* standing = examination.standing(working.front());
  const Standing* waits = examination.standing(waiting.front());
  const std::string where = waits->activity == Activity::kGpu     ? "for the GPU"
                            : waits->activity == Activity::kStore ? "in the store"
                            : waits->call ? "in " + call_name(examination.job, *waits->call)
                                          : "in a collective";
  finding.summary =
      fmt::format("{} {} still at work ({}) while {} wait{} {}", said(working), is_or_are(working),
                  place(standing->user), said(waiting), waiting.size() == 1 ? "s" : "", where);
  finding.fix =
      "Raise the timeout of the group, share the work between ranks, or do it before the job: "
      "this is slow, not hung, if it finishes.";
  if (const auto past = may_have_passed(examination, standing, waits)) {
    tell_past_the_call(*past, where, finding);
  }
  if (standing->user.known()) {
    finding.locations.push_back(
        location(standing->user, working,
                 fmt::format("{} {} at work here", said(working), is_or_are(working))));
  }
  if (waits->user.known()) {
    finding.locations.push_back(
        location(waits->user, waiting, waiting_here(examination.job, waiting)));
  }
  tell_fork_in_library(*standing, *waits, finding);
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: all ranks but one wait in a barrier, for minutes; later the job continues, or a timeout ends it.

Why: the other ranks wait while one rank downloads, tokenises, saves a checkpoint or loads a large file.

How ddpdoctor knows: the missing rank is running, or its stack changed between two snapshots. The job is slow, not hung, so the
confidence is only possible. In a log, a progress bar or lines of steps continued until the wait of another rank timed out, or the only
rank that did not wait had announced work that takes long: likely. The same if a rank timed out at the entry of main_process_first,
whose block the main process had not left.

Fix: set a longer timeout for that phase, or shorten the phase.

    -    dist.init_process_group("nccl")
    +    dist.init_process_group("nccl", timeout=datetime.timedelta(hours=2))
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "long-phase",
                           .title = "One rank works while the others wait",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kPlainFact,
                           .effect = Effect::kSlow};

}  // namespace ddpdoctor::detectors::long_phase
