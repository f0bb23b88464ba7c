// SPDX-License-Identifier: Apache-2.0
// The same group and sequence number, two different operations: neither can complete.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/inside_mpi.h"
#include "collector/detectors/evidence/out_of_step.h"
#include "collector/detectors/evidence/stalled_tensors.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"

namespace ddpdoctor::detectors::mismatched_op {
namespace {

/// One call is as all ranks made it before, the other is the first of its kind.
void tell_new_call(const graph::Examination& examination, const Explanation& explanation,
                   Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary =
      fmt::format("{} called {}, a call that no rank made before; {} called {} as in earlier steps",
                  said(parting.odd.ranks), odd_place(examination, explanation),
                  said(parting.rest.ranks), waiting_call(examination, explanation));
  finding.fix = fmt::format(
      "Call {} ({}) on every rank or on none. Compare the values that decide it (class, "
      "option, log level, own data) on {} and on {}.",
      parting.odd.operation, line_of(parting.odd.site()), said(parting.odd.ranks),
      said(parting.rest.ranks));
}

/// Both lines if they are known, else the command that shows them.
std::string same_operation(const graph::Examination& examination, const Parting& parting) {
  const std::string nth =
      (parting.sequence ? fmt::format(" as call #{}", *parting.sequence) : std::string()) +
      fmt::format(" of {}", group_name(examination.job, parting.group));
  if (!parting.odd.site().known() && !parting.rest.site().known()) {
    return fmt::format(
        "Call the same operation{} on every rank. The lines are unknown: run `ddpdoctor attach "
        "PID` on the job to see them.",
        nth);
  }
  return fmt::format("Call the same operation{} on every rank: {} ({}) or {} ({}).", nth,
                     parting.odd.operation, line_of(parting.odd.site()), parting.rest.operation,
                     line_of(parting.rest.site()));
}

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  if (parting.undecided) {
    finding.summary = fmt::format(
        "{} {} in {} and {} in {}; which of them skipped a call is unknown: no record shows it",
        said(parting.rest.ranks), is_or_are(parting.rest.ranks),
        waiting_call(examination, explanation), said(parting.odd.ranks),
        odd_place(examination, explanation));
    finding.fix = fmt::format(
        "Start the next run with `ddpdoctor run -- …`: it records which rank never called {} ({}).",
        parting.rest.operation, line_of(parting.rest.site()));
    return;
  }
  if (newcomer(examination, parting) == Newcomer::kOdd) {
    tell_new_call(examination, explanation, finding);
    return;
  }
  if (parting.tie) {  // the difference is certain, but not which side is wrong
    finding.culprits = {};
    finding.waiting = parting.odd.ranks.united(parting.rest.ranks);
  }
  finding.summary = fmt::format("{} called {}, but {} called {}", said(parting.odd.ranks),
                                odd_place(examination, explanation), said(parting.rest.ranks),
                                waiting_call(examination, explanation));
  finding.fix = same_operation(examination, parting);
}

Findings detect(const graph::Examination& examination) {
  if (auto finding = different_tensors(examination.job, "mismatched-op")) {
    return {std::move(*finding)};
  }
  if (auto finding = parted_inside_mpi(examination, "mismatched-op")) {
    return {std::move(*finding)};
  }
  Findings findings = findings_with(examination, Cause::kMismatchedOp, "mismatched-op",
                                    [&](const Explanation& explanation, Finding& finding) {
                                      tell(examination, explanation, finding);
                                    });
  return findings.empty() ? calls_out_of_step(examination) : findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: all ranks are in a collective of one group, and none completes.

Why: collectives are paired by their order in the group. The n-th call of one rank is, for example, a broadcast, and the n-th call of
another is an all_reduce. They wait for each other's messages and receive the wrong ones, or none.

How ddpdoctor knows: from the recorded calls (same group, same sequence number, different operation), from the stacks, or from both.
No timeout is needed: the call is wrong as soon as it is entered. If two operations were called by the same number of ranks each,
ddpdoctor accuses the ranks that made a call which no rank made before, provided that the others continued as in earlier steps;
otherwise it accuses no rank. Horovod pairs tensors by their names: from its warning, if each side submitted tensors that the other
side did not submit. From the counts of two watchdogs, if a rank has finished calls that cannot finish without a rank which is
still in an earlier call (possible). Native stacks of ranks in one call of MPI show it if they took different paths inside MPI
(possible).

Fix: call one operation at one point of the program.

    -    if big:
    -        dist.broadcast(stats, src=0)
    -    else:
    -        dist.all_reduce(stats)
    +    dist.all_reduce(stats)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "mismatched-op",
                           .title = "Ranks call different collectives at the same point",
                           .explanation = kExplanation,
                           .detect = detect};

}  // namespace ddpdoctor::detectors::mismatched_op
