// SPDX-License-Identifier: Apache-2.0
// Ranks run a different number of steps: some have left the training loop, the others wait for them
// in its next backward or collective.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/loops_seen.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/swallowed.h"
#include "collector/detectors/partings/uneven_ahead.h"

namespace ddpdoctor::detectors {
namespace {

// The line at which the short ranks left: in the function that both sides share, not deep in what
// they called next.
void put_leaving_line_first(const Explanation& explanation, Finding& finding) {
  if (!explanation.fork) {
    return;
  }
  const model::CallSite& left = explanation.fork->ours;
  if (!finding.locations.empty() && finding.locations.front().line == left.line) {
    return;
  }
  finding.locations.insert(
      finding.locations.begin(),
      location(left, explanation.parting.odd.ranks,
               fmt::format("{} left the loop and {} here", said(explanation.parting.odd.ranks),
                           is_or_are(explanation.parting.odd.ranks))));
}

void add_counts(const graph::Examination& examination, const Parting& parting, Finding& finding) {
  const model::CallSite& site = parting.rest.site();
  std::map<model::Rank, int> counts;
  for (const model::Rank rank : {parting.odd.ranks.front(), parting.rest.ranks.front()}) {
    for (const model::CollectiveCall* call : examination.history.calls(parting.group, rank)) {
      counts[rank] += graph::same_line(call->call_site, site) ? 1 : 0;
    }
  }
  const int odd = counts[parting.odd.ranks.front()];
  const int rest = counts[parting.rest.ranks.front()];
  if (rest > odd) {
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text =
             fmt::format("the records hold {} calls from {} on rank {} and {} on rank {}", rest,
                         place(site), parting.rest.ranks.front(), odd, parting.odd.ranks.front())});
  }
}

// Where those who are still in the loop stand in it, and what it goes over.
void add_place_in_loop(const model::JobModel& job, const Explanation& explanation,
                       Finding& finding) {
  std::vector<std::pair<model::Rank, model::Iteration>> steps;
  for (const model::Rank rank : explanation.parting.rest.ranks) {
    if (const auto loop = loop_seen_at(job, rank, explanation.loop->where)) {
      steps.emplace_back(rank, loop->over);
    }
  }
  add_steps(steps, finding);
}

/// They are in backward in the last round of their loop: a rank that has made as many rounds, and
/// left a parameter out in its last backward, looks the same.
bool may_be_equal_steps(const graph::Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  return in_backward(examination, parting.rest) &&
         std::all_of(parting.rest.ranks.begin(), parting.rest.ranks.end(), [&](model::Rank rank) {
           const auto loop = loop_seen_at(examination.job, rank, explanation.loop->where);
           return loop && !loop->over.loose && loop->over.left == 0;
         });
}

// Who is done answers for the wrapped modules only, and the others have come to another call.
void tell_join(const graph::Examination& examination, const Explanation& explanation,
               Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format(
      "{} left the loop `{}` ({}) and {} in Join, which takes part in the collectives of its "
      "modules only; {} {} in a call of another kind, {} at {}",
      said(parting.odd.ranks), explanation.loop->header, place(explanation.loop->where),
      parting.odd.ranks.size() == 1 ? "waits" : "wait", said(parting.rest.ranks),
      is_or_are(parting.rest.ranks), waiting_call(examination, explanation),
      place(parting.rest.site()));
  finding.fix = fmt::format(
      "Make no collective of your own inside Join: move that at {} behind it, or give every "
      "rank the same number of steps and leave Join out.",
      place(parting.rest.site()));
}

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format(
      "{} left the loop `{}` ({}) while {} {} in its next step, in {}", said(parting.odd.ranks),
      explanation.loop->header, place(explanation.loop->where), said(parting.rest.ranks),
      is_or_are(parting.rest.ranks), waiting_call(examination, explanation));
  finding.fix = kEqualSteps;
  if (explanation.loop->shadowed) {
    tell_join(examination, explanation, finding);
  }
  if (const auto around = what_may_swallow(examination.job, parting.rest.path)) {
    finding.confidence = at_most(finding.confidence, Confidence::kLikely);
    finding.fix += fmt::format(
        " The call stands in {}: an exception that one rank swallowed leaves its call out, too.",
        *around);
  }
  if (may_be_equal_steps(examination, explanation)) {
    finding.confidence = at_most(finding.confidence, Confidence::kLikely);
    finding.fix +=
        " With equal numbers of steps: give every parameter a gradient in the last step, or pass "
        "find_unused_parameters=True to DistributedDataParallel.";
  }
  put_leaving_line_first(explanation, finding);
  finding.locations.push_back(location(explanation.loop->where, {}, "the loop that ended earlier"));
  add_counts(examination, parting, finding);
  add_place_in_loop(examination.job, explanation, finding);
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_with(examination, Cause::kUneven, "uneven-inputs",
                                    [&](const Explanation& explanation, Finding& finding) {
                                      tell(examination, explanation, finding);
                                    });
  if (auto ahead = uneven_ahead(examination)) {
    findings.push_back(std::move(*ahead));
  }
  return findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: the job stands still near the end of an epoch, at the same step in every run. Some ranks are in validation, at a
checkpoint, in a barrier or gone with status 0; the others are in backward.

Why: the data gives the ranks different numbers of batches: an own sampler, an iterable dataset with fewer shards than ranks times
workers, a length that lies, a filter. The ranks with more steps wait in a gradient reduction that the others will never join.

How it is recognised: some ranks wait inside a loop of your source that the others have left; the records hold fewer calls of
the loop on those. While the job still trains, the iterators of the loop are read: ranks whose loops have different lengths and call a
collective in every step will come to this, and that is said before they do (likely, never more). A loop that a test can end or skip, a
Join around it, no_sync() and further steps after it make the lengths say nothing.

The fix: equal numbers of steps, or an agreement that handles unequal ones.

    -    loader = DataLoader(dataset[rank::world], batch_size=32)
    +    sampler = DistributedSampler(dataset, drop_last=True)
    +    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
)";

}  // namespace

extern const Detector uneven_inputs;
const Detector uneven_inputs = {.kind = "uneven-inputs",
                                .title = "Ranks run a different number of steps",
                                .explanation = kExplanation,
                                .detect = detect};

}  // namespace ddpdoctor::detectors
