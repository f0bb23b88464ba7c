// SPDX-License-Identifier: Apache-2.0
// The last resort: ranks wait and nothing makes progress, but the evidence does not show why. Names
// what to capture next.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/behind_gpus.h"
#include "collector/detectors/evidence/device_calls.h"
#include "collector/detectors/evidence/each_place.h"
#include "collector/detectors/evidence/engine_waits.h"
#include "collector/detectors/evidence/felt_another_end.h"
#include "collector/detectors/evidence/half_finished.h"
#include "collector/detectors/evidence/may_spin.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/next_steps.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/ras_counts.h"
#include "collector/detectors/evidence/served_requests.h"
#include "collector/detectors/evidence/threads_in_calls.h"
#include "collector/detectors/evidence/told_gil_holder.h"
#include "collector/detectors/evidence/told_timeouts.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/detectors/evidence/unknown_log.h"
#include "collector/detectors/evidence/waiting_aborts.h"
#include "collector/detectors/evidence/where_dumped.h"
#include "collector/detectors/evidence/where_interrupted.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::undetermined {
namespace {

constexpr std::size_t kLongestLine = 240;

/// "the cause is unknown because ranks 4-7 were not captured".
std::string why_unknown(const graph::Examination& examination) {
  if (std::string cut = cut_stacks_said(examination); !cut.empty()) {
    return cut;
  }
  const model::RankSet unseen = unobserved_ranks(examination);
  if (!unseen.empty()) {
    return fmt::format("the cause is unknown because {} not captured",
                       ranks_do(unseen, "was", "were"));
  }
  return examination.history.empty()
             ? "the cause is unknown because the calls of each rank were not recorded"
             : "whether a rank is missing is unknown";
}

/// Neither a stack nor a recorded call of any rank: there is no evidence to judge.
bool nothing_to_read(const graph::Examination& examination) {
  const auto has_stack = [](const model::Process* process) {
    return process->exit || std::any_of(process->threads.begin(), process->threads.end(),
                                        [](const auto& thread) { return !thread.frames.empty(); });
  };
  const auto seen = processes(examination.job);
  return examination.history.empty() && may_hang(examination) && !examination.job.ended &&
         std::none_of(seen.begin(), seen.end(), has_stack);
}

/// One snapshot: every rank in it waits, or may. That is a hang, or a moment of a healthy step.
bool all_wait_at_one_look(const graph::Examination& examination, const model::RankSet& waiting) {
  return examination.job.progress == model::Progress::kUnknown && !waiting.empty() &&
         waiting.size() + unobserved_ranks(examination).size() +
                 ranks_where(examination, may_spin).size() >=
             examination.standings.size();
}

Findings nothing_known(const graph::Examination& examination) {
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  if (const auto served = served_until_end(examination.job)) {
    finding.summary = fmt::format("the log shows no hang: at its end the server {}", served->what);
    finding.fix = "If requests hang now, run `ddpdoctor attach PID` on the server.";
    finding.evidence.push_back({.rank = {}, .text = "log: " + served->line});
    return {finding};
  }
  if (const auto bar = moving_bar(examination.job)) {
    finding.summary = fmt::format("the log shows no failure: its last lines are steps: {}", *bar);
    finding.fix = "If no step follows now, run `ddpdoctor attach PID`: it reads all processes.";
    return {finding};
  }
  const auto last = last_line_of_the_log(examination.job);
  finding.summary = last ? fmt::format("the log names no known cause; its last line: {}", *last)
                         : "no stack and no recorded call of any rank is known";
  finding.fix = next_steps(examination);
  for (const std::string& observed : examination.job.coverage.observed) {
    if (observed.starts_with(model::kReadAsLog)) {  // the user may have meant it as a dump
      finding.evidence.push_back(
          {.rank = {},
           .text = fmt::format("{} was read as a log; no known message was found in it",
                               observed.substr(model::kReadAsLog.size()))});
    }
  }
  quote_trouble(examination.job, finding);
  for (const model::Log& log : examination.job.logs) {
    if (log.text.find(kWatchdogTimeout) != std::string::npos) {
      finding.evidence.push_back(
          {.rank = log.rank, .text = "log: a collective timed out; the rank is not named"});
    }
  }
  return {finding};
}

/// Every rank waits for its GPU, or stays at its line on one, and no record shows what is queued.
Findings all_behind_their_gpus(const graph::Examination& examination) {
  const model::RankSet behind = behind_their_gpus(examination);
  const bool known =
      !behind.empty() && behind.size() == examination.standings.size() && may_hang(examination);
  const model::RankSet stay = known ? behind : stay_at_their_lines(examination);
  if (stay.empty()) {
    return {};
  }
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  finding.waiting = stay;
  finding.summary =
      known ? fmt::format("{}{}; stacks do not show what runs there: a collective or a long kernel",
                          ranks_do(stay, "is waiting for its GPU", "are waiting for their GPUs"),
                          in_which_call(*examination.standing(stay.front())))
            : fmt::format(
                  "the hosts of {} do not move; stacks do not show what their GPUs wait for: a "
                  "collective or a long kernel",
                  said(stay));
  finding.fix = next_steps(examination, true);
  tell_each_place(examination, stay, finding);
  tell_waiting_aborts(examination, finding);
  return {finding};
}

/// A wait that frames identify, for something other than another rank.
bool waits_for_something(const graph::Standing& standing) {
  switch (standing.activity) {
    case graph::Activity::kDataLoader:
    case graph::Activity::kJoin:
    case graph::Activity::kQueue:
    case graph::Activity::kLock:
    case graph::Activity::kGpu:
    case graph::Activity::kImport:
    case graph::Activity::kExit:
      return standing.thread != nullptr;
    case graph::Activity::kEventLoop:
      return !threads_in_calls(*standing.process).empty();
    default:
      return false;
  }
}

/// Dumps of ranks that all wait for something of their own: their lines, and the rank whose dump is
/// missing.
Findings each_waits_for_its_own(const graph::Examination& examination) {
  const auto& all = examination.standings;
  const bool dumped = !all.empty() && examination.job.progress == model::Progress::kUnknown &&
                      std::all_of(all.begin(), all.end(), [](const graph::Standing& standing) {
                        return standing.process != nullptr &&
                               model::was_dumped(*standing.process) &&
                               waits_for_something(standing);
                      });
  if (!dumped || examination.job.ended) {
    return {};
  }
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  model::RankSet ranks;
  for (const graph::Standing& standing : all) {
    ranks.insert(standing.rank);
  }
  finding.summary = fmt::format(
      "{}; {}", whereabouts(examination.job, model::RankSet{all.front().rank}, all.front()),
      all.size() == 1 ? "one dump does not show what keeps it there"
                      : "the dumps do not show what keeps the ranks there");
  finding.fix =
      "Run `ddpdoctor attach PID` on the launcher: it reads all ranks, workers and helper "
      "processes at one moment.";
  tell_each_place(examination, ranks, finding);
  tell_threads_in_calls(examination, finding);
  tell_other_processes(examination, finding);
  return {finding};
}

/// What stacks, calls and the words of watchdogs show although no cause is known.
Findings shown_without_cause(const graph::Examination& examination) {
  const model::RankSet waiting = waiting_ranks(examination);
  if (Findings told = felt_another_end(examination); waiting.empty() && !told.empty()) {
    return told;
  }
  const bool hangs = examination.still() || (examination.job.ended && !waiting.empty());
  if (Findings told = all_behind_their_gpus(examination); !told.empty()) {
    return told;
  }
  for (auto* const told : {counted_once, half_finished}) {
    if (auto finding = told(examination)) {
      return {*std::move(finding)};
    }
  }
  const bool one_look = all_wait_at_one_look(examination, waiting);
  if (waiting.empty() || (!hangs && !one_look)) {
    Findings told = ended_by_watchdogs(examination);
    if (!told.empty() || !waiting.empty()) {
      return told;
    }
    told = each_waits_for_its_own(examination);
    std::optional<Finding> shown;
    for (auto* const find_place :
         {told_gil_holder, where_in_driver, where_dumped, where_interrupted}) {
      shown = told.empty() && !shown ? find_place(examination) : std::move(shown);
    }
    return shown ? Findings{*std::move(shown)} : told;
  }
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  finding.waiting = waiting;
  const graph::Standing& first = *examination.standing(waiting.front());
  const std::string together =
      waiting.size() == 1 ? whereabouts(examination.job, waiting, first) + in_which_call(first, ",")
                          : common_whereabouts(examination, waiting);
  const std::string cut = cut_stacks_said(examination);
  const std::string unsure =
      cut.empty() ? "one snapshot cannot tell a hang from a normal step" : cut;
  finding.summary = !together.empty() && !hangs
                        ? fmt::format("{}; {}", together, unsure)
                        : fmt::format("{} {}", ranks_do(waiting, "is waiting", "are waiting"),
                                      hangs ? "in a collective; " + why_unknown(examination)
                                            : fmt::format("for other ranks; {}", unsure));
  const bool ask_nccl = examination.history.empty() && is_gpu_job(examination);
  finding.fix = next_steps(examination, ask_nccl);
  tell_each_place(examination, waiting, finding);
  return {finding};
}

Findings detect(const graph::Examination& examination) {
  Findings shown = shown_without_cause(examination);
  if (!shown.empty() || !nothing_to_read(examination)) {
    return shown;
  }
  if (auto engine = engine_waits(examination.job)) {
    return {std::move(*engine)};
  }
  const bool well = ended_well_in_nccl(examination.job) || nccl_tests_passed(examination.job);
  return well ? Findings{} : nothing_known(examination);
}

constexpr std::string_view kExplanation =
    R"(What you see: ranks wait, the job makes no progress, and no known cause matches.

Why: a rank could not be observed, there are no records of the collectives, or the job hangs in a way that ddpdoctor does not know.

How ddpdoctor knows: no other kind matched the evidence.

The fix is to collect more evidence: observe all ranks at once (on every node, with permission to read them), start the job with
`ddpdoctor run`, and attach twice, some seconds apart.

    - $ torchrun --nproc_per_node=4 train.py
    + $ ddpdoctor run -- torchrun --nproc_per_node=4 train.py
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "undetermined",
                           .title = "The evidence does not decide",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kSaysNothing};

}  // namespace ddpdoctor::detectors::undetermined
