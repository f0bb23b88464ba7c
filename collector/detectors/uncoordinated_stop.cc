// SPDX-License-Identifier: Apache-2.0
// A signal (preemption, the end of the time limit) reaches the ranks at different steps, and each
// acts on its own: one leaves the loop or saves while the others make their next step.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/signal_exceptions.h"
#include "collector/detectors/evidence/signal_handlers.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/loops_seen.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/questions/reaching.h"
#include "collector/program/questions/uses.h"

namespace ddpdoctor::detectors::uncoordinated_stop {
namespace {

constexpr std::string_view kKind = "uncoordinated-stop";
constexpr std::size_t kMostLines = 4;
constexpr std::size_t kLongestLine = 200;

/// The condition that a signal decides.
struct Stop {
  Test test;
  program::Origin origin;
};

std::optional<Stop> stop_of(const model::JobModel& job, const Explanation& explanation) {
  if (!explanation.branch || explanation.branch->catches) {
    return std::nullopt;
  }
  const Branch& branch = *explanation.branch;
  std::vector<Test> tests = branch.or_else;
  tests.insert(tests.begin(), {.where = branch.where, .condition = branch.condition});
  for (const Test& test : tests) {
    program::Origin origin = origin_of(job, test);
    if (origin.source == program::Source::kSignal) {
      return Stop{.test = test, .origin = std::move(origin)};
    }
  }
  return std::nullopt;
}

/// "SIGTERM" of `signal.signal(signal.SIGTERM, self.stop)`; "a signal" if no line names it.
std::string signal_name(const program::Origin& origin) {
  for (const program::OriginStep& step : origin.chain) {
    for (const program::Call& call : program::calls_in(step.text)) {
      const auto name =
          call.arguments.empty() ? std::string_view() : program::last_name(call.arguments.front());
      if (name.starts_with("SIG")) {  // as in POSIX and Python, every signal name begins with SIG
        return std::string(name);
      }
    }
  }
  return "a signal";
}

/// Messages of launchers and schedulers when they end a job.
void add_announcements(const model::JobModel& job, Finding& finding) {
  constexpr std::array<std::string_view, 5> kWords = {"DUE TO PREEMPTION", "DUE TO TIME LIMIT",
                                                      "closing signal SIGTERM", "death signal",
                                                      "Received SIGTERM"};
  std::size_t lines = 0;
  for (const model::Log& log : job.logs) {
    for (const std::string_view line : base::split(log.text, '\n')) {
      const bool says = base::contains_any(line, kWords);
      if (says && lines < kMostLines) {
        ++lines;
        finding.evidence.push_back(
            {.rank = log.rank,
             .text = "log: " + base::elide(base::printable(std::string(line)), kLongestLine)});
      }
    }
  }
}

/// The side that acted: a handler sets its flag, so that who found it set did. The line that a test
/// leads to is often the next step of those who continue (`if stop: return`).
bool odd_ranks_acted(const model::JobModel& job, const Explanation& explanation, const Stop& stop) {
  const Branch& branch = *explanation.branch;
  const auto& lines = lines_of(job, branch.where.file);
  const auto result = branch.guarded.file == branch.where.file
                          ? program::result_leading_to(lines, branch.where.line, branch.condition,
                                                       branch.guarded.line)
                          : std::nullopt;
  if (!result || stop.test.where != branch.where) {
    return branch.leads_to_ours || explanation.loop;
  }
  const std::vector<std::string> operands = program::operands_of(branch.condition);
  const bool negated = std::any_of(operands.begin(), operands.end(), [&](const auto& operand) {
    return program::is_negated(branch.condition, operand) &&
           origin_of(job, Test{.where = branch.where, .condition = operand}).source ==
               program::Source::kSignal;
  });
  return branch.leads_to_ours == (*result != negated);
}

/// How far each rank was when it acted, or did not: by its calls or its loop.
void add_progress(const graph::Examination& examination, const Explanation& explanation,
                  Finding& finding) {
  std::map<std::int64_t, model::RankSet> made;
  std::vector<std::pair<model::Rank, model::Iteration>> steps;
  for (const model::Rank rank :
       explanation.parting.odd.ranks.united(explanation.parting.rest.ranks)) {
    const model::CollectiveCall* last = examination.history.last(explanation.parting.group, rank);
    if (last != nullptr) {
      made[last->sequence].insert(rank);
    }
    const graph::Standing* standing = examination.standing(rank);
    const std::vector<LoopSeen> loops = standing == nullptr || standing->thread == nullptr
                                            ? std::vector<LoopSeen>()
                                            : loops_seen(examination.job, *standing->thread);
    if (!loops.empty()) {
      steps.emplace_back(rank, loops.front().over);
    }
  }
  for (const auto& [sequence, ranks] : made) {
    finding.evidence.push_back(
        {.rank = ranks.front(),
         .text = fmt::format("{} made {} calls of {}", said(ranks), sequence,
                             group_name(examination.job, explanation.parting.group))});
  }
  add_steps(steps, finding);
}

void tell(const graph::Examination& examination, const Explanation& explanation, const Stop& stop,
          Finding& finding) {
  const Parting& parting = explanation.parting;
  const bool odd_acted = odd_ranks_acted(examination.job, explanation, stop);
  const Side& acted = odd_acted ? parting.odd : parting.rest;
  const Side& others = odd_acted ? parting.rest : parting.odd;
  const std::string name = signal_name(stop.origin);
  const std::string condition = base::elide(stop.test.condition, 60);
  finding.kind = kKind;
  finding.summary = fmt::format(
      "{} acted on {} (`{}`, {}); {} did not, and {} in {}", said(acted.ranks), name, condition,
      line_of(stop.test.where), said(others.ranks), is_or_are(others.ranks),
      odd_acted ? waiting_call(examination, explanation) : odd_place(examination, explanation));
  finding.fix = fmt::format(
      "Call all_reduce(flag, MAX) in every step before `{}` ({}), so that all ranks stop at the "
      "same step.",
      condition, line_of(stop.test.where));
  if (!stop.origin.chain.empty()) {
    const program::OriginStep& handler = stop.origin.chain.back();
    finding.locations.push_back(
        location({.file = handler.file.empty() ? stop.test.where.file : handler.file,
                  .line = handler.line,
                  .function = {}},
                 {}, fmt::format("registers the handler of {}", name)));
  }
  finding.details["signal"] = name;
  add_progress(examination, explanation, finding);
  add_announcements(examination.job, finding);
}

/// Ranks that wait for others inside a handler, while those are not in it.
std::optional<Finding> from_handlers(const graph::Examination& examination) {
  model::RankSet inside;
  Interruption seen;
  for (const graph::Standing& standing : examination.standings) {
    const auto handler = standing.thread != nullptr && standing.waits_for_ranks()
                             ? interruption(examination.job, *standing.thread)
                             : std::nullopt;
    if (handler) {
      inside.insert(standing.rank);
      seen = *handler;
    }
  }
  const auto sure = stuck(examination);
  const model::RankSet others = waiting_ranks(examination).minus(inside);
  if (inside.empty() || others.empty() || !sure) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = unobserved_ranks(examination).empty() ? *sure : Confidence::kPossible;
  finding.culprits = inside;
  finding.waiting = others;
  const model::CallSite handler = model::call_site(*seen.handler);
  finding.summary = fmt::format(
      "{} {} waiting for the other ranks in the signal handler {}() ({}); {} {} not in it",
      said(inside), is_or_are(inside), named_function(seen.handler->function), line_of(handler),
      said(others), is_or_are(others));
  finding.fix = fmt::format(
      "Set only a flag in {}(); all_reduce the flag in every step and save or stop when any rank "
      "has set it.",
      named_function(seen.handler->function));
  finding.locations.push_back(location(handler, inside, "runs when the signal arrives"));
  finding.locations.push_back(
      location(model::call_site(*seen.interrupted), inside, "was interrupted here"));
  add_whereabouts(finding, examination, inside);
  add_whereabouts(finding, examination, others);
  add_announcements(examination.job, finding);
  return finding;
}

/// Ranks that a library ended with an exception for the signal, while others made their next step.
std::optional<Finding> from_exceptions(const graph::Examination& examination) {
  const std::vector<Traceback> left = left_for_a_signal(examination);
  if (left.empty()) {
    return std::nullopt;
  }
  const std::string name = signal_of_exception(left.front().exception);
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kLikely;
  for (const Traceback& one : left) {
    finding.culprits.insert(*one.rank);
    finding.evidence.push_back(
        {.rank = one.rank,
         .text = "log: " + base::elide(base::printable(one.exception), kLongestLine)});
  }
  const std::vector<model::CallSite>& frames = left.front().frames;
  const model::CallSite at = frames.empty() ? left.front().place : frames.front();
  finding.locations.push_back(location(
      at, finding.culprits, fmt::format("{} stopped below this call", said(finding.culprits))));
  if (left.front().raiser.known() && left.front().raiser != at) {
    finding.locations.push_back(
        location(left.front().raiser, finding.culprits, "raises when the signal has arrived"));
  }
  add_waiting(examination, finding);
  finding.summary = fmt::format("{} stopped for {}{}, and {} waited for {} in {} next step",
                                said(finding.culprits), name, placed(at), said(finding.waiting),
                                finding.culprits.size() == 1 ? "it" : "them",
                                finding.waiting.size() == 1 ? "its" : "their");
  finding.fix = fmt::format(
      "Handle {} yourself: set only a flag, all_reduce it in every step, and stop all ranks at the "
      "same step.",
      name);
  finding.details["signal"] = name;
  add_announcements(examination.job, finding);
  return finding;
}

Findings detect(const graph::Examination& examination) {
  Findings findings;
  if (auto finding = from_exceptions(examination)) {
    return {*std::move(finding)};
  }
  for (const Explanation& explanation : explanations(examination)) {
    const auto stop = explanation.cause == Cause::kSlow || explanation.cause == Cause::kNone
                          ? std::nullopt
                          : stop_of(examination.job, explanation);
    if (stop) {
      Finding finding = finding_of(examination, explanation, 1);
      tell(examination, explanation, *stop, finding);
      findings.push_back(std::move(finding));
    }
  }
  if (findings.empty()) {
    if (auto finding = from_handlers(examination)) {
      findings.push_back(std::move(*finding));
    }
  }
  return findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: the scheduler preempts the job, or its time is up; the job neither saves nor exits, and is killed. One rank is in the
save, in a barrier after the loop or in its exit; the others are in the all_reduce of the next step.

Why: the signal arrives at each process at a different moment, and Python runs the handler between two lines. One rank sees the flag
that the handler sets in this step, another rank in the next step, so one rank leaves the loop a step earlier.

How ddpdoctor knows: the ranks diverge at a condition whose value comes, in your source, from a function that signal.signal() or
add_signal_handler() registers, or from a threading.Event that such a function sets; or a rank waits for others inside its handler
while they are not in their handlers; or a rank ended with an exception that a library raises for a signal (Lightning's
SIGTERMException) and others then waited for it. A time limit that each rank reads from its own clock is reported as divergent-branch.

Fix: agree on the flag with an all_reduce.

    +    flag = torch.tensor([int(stop.requested)])
    +    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    -    if stop.requested:
    +    if flag.item():
             break
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = kKind,
                           .title = "Ranks act on a signal at different steps",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kPlaceOfCause};

}  // namespace ddpdoctor::detectors::uncoordinated_stop
