// SPDX-License-Identifier: Apache-2.0
// One rank works (saves, tokenizes, compiles a data set) while the others wait for it in a barrier:
// slow, not hung.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/awaited_main.h"
#include "collector/detectors/evidence/past_the_call.h"
#include "collector/detectors/evidence/told_timeouts.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::long_phase {
namespace {

using graph::Activity;
using graph::Standing;

bool works(const Standing& standing) {
  const bool read = standing.thread != nullptr && !standing.thread->frames.empty();
  return read && !standing.waits_for_ranks() && standing.activity != Activity::kCompiling &&
         (standing.on_cpu || standing.moved || standing.activity == Activity::kSaving);
}

/// All waiting ranks reached their call a moment ago: a normal step.
bool all_just_came(const graph::Examination& examination, const model::RankSet& waiting) {
  constexpr double kMoment = 1;  // second
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

/// Only a log is known: a progress bar of another process moved until a watchdog ended the wait.
Findings moved_while_others_waited(const graph::Examination& examination) {
  ToldTimeouts told = told_timeouts(examination.job);
  const auto bars = model::facts(examination.job, "progress-bar");
  if (told.ranks.empty()) {
    told.ranks = waiting_ranks(examination);
    told.operation = "a collective";
  }
  // Rank 0 draws most bars.
  const auto of_another = std::find_if(bars.begin(), bars.end(), [&told](const model::Fact* bar) {
    return !told.ranks.contains(bar->rank.value_or(0));
  });
  if (told.ranks.empty() || of_another == bars.end()) {
    return {};
  }
  const model::Fact& bar = **of_another;
  Finding finding;
  finding.kind = "long-phase";
  finding.confidence = Confidence::kLikely;
  finding.waiting = told.ranks;
  if (bar.rank) {
    finding.culprits.insert(*bar.rank);
  }
  const std::string count =
      fmt::format("{} of {}", bar.text("done").value_or("?"), bar.text("total").value_or("?"));
  const std::string name = bar.text("text").value_or("");
  finding.summary =
      fmt::format("{} was still at work ({}{}{}) when the watchdog of {} ended the wait in {}",
                  bar.rank ? fmt::format("rank {}", *bar.rank) : "a different rank", name,
                  name.empty() ? "" : ": ", count, said(told.ranks), told.operation);
  finding.evidence.push_back(
      {.rank = bar.rank,
       .text =
           fmt::format("log: the progress bar `{}` moved during the wait, to {}", name, count)});
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
  finding.summary =
      fmt::format("{} was still inside `{}`{} when {} timed out at its entry",
                  awaited->one_host ? "rank 0" : "the main process", awaited->function, count,
                  awaited->waiting.empty() ? "a different rank" : said(awaited->waiting));
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

Findings detect(const graph::Examination& examination) {
  const model::RankSet waiting = waiting_ranks(examination);
  const model::RankSet working = ranks_where(examination, works);
  if (working.empty()) {
    Findings inside = inside_while_others_waited(examination);
    return inside.empty() ? moved_while_others_waited(examination) : inside;
  }
  // All others wait: otherwise this is a step of a running job.
  const bool all_told = waiting.size() + working.size() == examination.standings.size();
  if (waiting.empty() || working.empty() || !all_told || working.size() >= waiting.size() + 1 ||
      all_just_came(examination, waiting)) {
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
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: all ranks but one wait in a barrier, for minutes; later the job continues, or a timeout ends it.

Why: the other ranks wait while one rank downloads, tokenises, saves a checkpoint or loads a large file.

How ddpdoctor knows: the missing rank is running, or its stack changed between two snapshots. The job is slow, not hung, so the
confidence is only possible. In a log, a progress bar moved until torch's watchdog ended the wait of a different rank: likely. The
same if a rank timed out at the entry of main_process_first, whose block the main process had not left.

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
