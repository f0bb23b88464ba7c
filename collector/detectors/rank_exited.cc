// SPDX-License-Identifier: Apache-2.0
// rank-exited: a rank ended with status 0 while others still call collectives and wait for it.
#include <fmt/format.h>

#include "collector/detectors/agreement.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/processes.h"
#include "collector/detectors/suspects.h"
#include "collector/detectors/wording.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "rank-exited";

/// Ended by itself and well: no signal, status 0.
bool left_in_peace(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kExited &&
         (standing.process == nullptr || !standing.process->exit ||
          standing.process->exit->status.value_or(0) == 0);
}

/// The others failed in a call that it had left before.
Findings after_the_end(const graph::Examination& examination, const model::RankSet& left) {
  for (const Forsaken& forsaken : forsaken_calls(examination)) {
    if (forsaken.missing.common(left).empty()) {
      continue;
    }
    Finding finding;
    finding.kind = kKind;
    finding.culprits = forsaken.missing.common(left);
    finding.waiting = forsaken.ranks;
    finding.confidence = Confidence::kLikely;
    finding.summary =
        fmt::format("{} left before {} #{}, in which {} then failed", said(finding.culprits),
                    forsaken.operation, forsaken.sequence, said(forsaken.ranks));
    for (const model::RankSet* side : {&finding.culprits, &finding.waiting}) {
      const model::CollectiveCall* last = examination.history.last(forsaken.group, side->front());
      if (last != nullptr && last->call_site.known()) {
        finding.locations.push_back(
            location(last->call_site, *side, fmt::format("the last call of {}", said(*side))));
      }
    }
    finding.fix =
        "Give every rank the same number of steps (drop_last, DistributedSampler, Join), or let "
        "the others know that this one is done.";
    return {std::move(finding)};
  }
  return {};
}

Findings detect(const graph::Examination& examination) {
  Finding finding;
  finding.kind = kKind;
  finding.culprits = ranks_where(examination, [&examination](const graph::Standing& standing) {
    return left_in_peace(standing) ||
           (standing.activity == graph::Activity::kDead && standing.process != nullptr &&
            aborted_while_ending(examination.job, standing.rank,
                                 exit_of(examination.job, *standing.process)));
  });
  add_waiting(examination, finding);
  const auto still = stuck(examination);
  if (finding.waiting.empty() && !finding.culprits.empty() && examination.job.ended) {
    return after_the_end(examination, finding.culprits);
  }
  if (finding.culprits.empty() || finding.waiting.empty() || !still) {
    return {};
  }
  // The exit status and the stacks of those who wait: two facts.
  finding.confidence = *still == Confidence::kLikely ? Confidence::kCertain : *still;
  const bool well =
      ranks_where(examination, left_in_peace).common(finding.culprits) == finding.culprits;
  finding.summary = fmt::format("{} {} {}{}", said(finding.culprits), has_or_have(finding.culprits),
                                well ? "exited with status 0" : "ended before the others",
                                and_who_waits(finding));
  add_whereabouts(finding, examination, finding.waiting);
  finding.fix =
      "Give every rank the same number of steps (drop_last, DistributedSampler, Join), or let the "
      "others know that this one is done.";
  return {std::move(finding)};
}

}  // namespace

extern const Detector rank_exited;
const Detector rank_exited{
    .kind = kKind,
    .title = "A rank left while others wait for it",
    .explanation =
        R"(What you see: one rank is gone with status 0, the others stand in a collective.

Why: it ran out of data, returned early, or called sys.exit. Launchers take status 0 for success and do not end the others.

How it is recognised: its exit status, and the stacks of the others.

Fix: the same number of steps on every rank; see `ddpdoctor explain uneven-inputs`.
    -     if loss.isnan(): sys.exit(0)
    +     bad = torch.tensor([float(loss.isnan())])
    +     dist.all_reduce(bad)
    +     if bad.item() > 0: sys.exit(1)      # all of them)",
    .detect = detect,
    .specificity = kPlainFact,
};

}  // namespace ddpdoctor::detectors
