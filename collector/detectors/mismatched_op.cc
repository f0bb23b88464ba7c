// SPDX-License-Identifier: Apache-2.0
// The same group and sequence number, two different operations: neither can ever complete.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/parting_finding.h"

namespace ddpdoctor::detectors {
namespace {

/// In __del__: when it runs depends on who still holds a reference.
bool in_finalizer(const Path& path) {
  return std::any_of(path.begin(), path.end(), [](const model::CallSite& site) {
    return site.function.ends_with("__del__");
  });
}

/// One call is as all made it before, the other is the first of its kind.
void tell_new_call(const graph::Examination& examination, const Explanation& explanation,
                   Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format(
      "{} called {}, where no rank had called anything before; {} went on to {} as before",
      said(parting.odd.ranks), odd_place(examination, explanation), said(parting.rest.ranks),
      waiting_call(examination, explanation));
  finding.fix = fmt::format(
      "Make {} ({}) on every rank or on none: find what led {} there and the others past it (a "
      "class, an option, a log level, data of its own).",
      parting.odd.operation, place(parting.odd.site()), said(parting.odd.ranks));
}

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  if (parting.undecided) {
    finding.summary = fmt::format(
        "{} {} in {} and {} in {}: one of these left it out and the others have gone on from it",
        said(parting.rest.ranks), is_or_are(parting.rest.ranks),
        waiting_call(examination, explanation), said(parting.odd.ranks),
        odd_place(examination, explanation));
    finding.fix =
        fmt::format("Record the next run with ddpdoctor run, which tells who never called {} ({}).",
                    parting.rest.operation, place(parting.rest.site()));
    return;
  }
  if (newcomer(examination, parting) == Newcomer::kOdd) {
    tell_new_call(examination, explanation, finding);
    return;
  }
  if (parting.tie) {  // that they differ is sure, who is out of step is not
    finding.culprits = {};
    finding.waiting = parting.odd.ranks.united(parting.rest.ranks);
  }
  finding.summary = fmt::format("{} called {} where {} called {}", said(parting.odd.ranks),
                                odd_place(examination, explanation), said(parting.rest.ranks),
                                waiting_call(examination, explanation));
  if (in_finalizer(parting.odd.path) || in_finalizer(parting.rest.path)) {
    finding.fix =
        "A collective in __del__ runs when the last reference goes, at another moment on each "
        "rank: make it in a close() that every rank calls, and keep no reference on some ranks "
        "only.";
    return;
  }
  finding.fix = fmt::format("Make all ranks call the same operation here: {} or {} ({} and {}).",
                            parting.odd.operation, parting.rest.operation,
                            place(parting.odd.site()), place(parting.rest.site()));
}

Findings detect(const graph::Examination& examination) {
  return findings_with(examination, Cause::kMismatchedOp, "mismatched-op",
                       [&](const Explanation& explanation, Finding& finding) {
                         tell(examination, explanation, finding);
                       });
}

constexpr std::string_view kExplanation =
    R"(What you see: all ranks are in a collective of one group and none completes.

Why: collectives are paired by their order in the group. The n-th call of one rank is, for example, a broadcast and that of another an
all_reduce. They wait for each other's messages and get the wrong ones, or none.

How it is recognised: by the recorded calls (same group, same sequence number, another operation), by the stacks, or by both. Nothing needs to
time out: it is wrong as soon as it is entered. Of two sides of one size the one is accused from whose line nobody ever called before, while the
other goes on as both did; else nobody is.

The fix: one operation at one point of the program.

    -    if big:
    -        dist.broadcast(stats, src=0)
    -    else:
    -        dist.all_reduce(stats)
    +    dist.all_reduce(stats)
)";

}  // namespace

extern const Detector mismatched_op;
const Detector mismatched_op = {.kind = "mismatched-op",
                                .title = "Ranks call different collectives at the same point",
                                .explanation = kExplanation,
                                .detect = detect};

}  // namespace ddpdoctor::detectors
