// SPDX-License-Identifier: Apache-2.0
// Two groups used in different order: each rank waits in a group for a rank that waits for it in
// another.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"

namespace ddpdoctor::detectors {
namespace {

std::string cycle_text(const graph::Examination& examination, const model::RankSet& ranks) {
  for (const auto& cycle : examination.waits.cycles()) {
    const bool ours = std::any_of(cycle.begin(), cycle.end(), [&ranks](const std::string& node) {
      return std::any_of(ranks.begin(), ranks.end(), [&node](model::Rank rank) {
        return node == fmt::format("rank:{}", rank);
      });
    });
    if (ours) {
      return graph::cycle_sentence(examination.waits, cycle);
    }
  }
  return {};
}

void add_places(const graph::Examination& examination, Finding& finding) {
  finding.locations.clear();
  for (const model::Rank rank : finding.culprits) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing != nullptr && standing->user.known() && finding.locations.size() < 4) {
      finding.locations.push_back(location(
          *standing, fmt::format("rank {} {}", rank, whereabouts(examination.job, *standing))));
    }
  }
}

Findings detect(const graph::Examination& examination) {
  const std::vector<Explanation> all = explanations(examination, Cause::kOrder);
  if (all.empty()) {
    return {};
  }
  Finding finding = finding_of(examination, all.front());
  finding.kind = "collective-order";
  for (const Explanation& explanation : all) {
    finding.culprits = finding.culprits.united(explanation.parting.odd.ranks);
    finding.culprits = finding.culprits.united(explanation.parting.rest.ranks);
  }
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  const std::string cycle = cycle_text(examination, finding.culprits);
  finding.summary = fmt::format("{} use {} and {} in different order{}", said(finding.culprits),
                                group_name(examination.job, all.front().parting.group),
                                group_name(examination.job, all.back().parting.group),
                                cycle.empty() ? "" : ": " + cycle);
  finding.fix =
      "Call the collectives of both groups in one order on every rank, or finish the first "
      "(wait()) before the second is started.";
  add_places(examination, finding);
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: every rank is in a collective, sequence numbers are consistent in each group, and nothing completes.

Why: rank A is in group 1 and goes to group 2 afterwards; rank B is in group 2 first. Each waits for the other in another group. With
NCCL the same happens when collectives of two communicators are launched in different order on one device.

How it is recognised: following who waits for whom leads back to the start, over two groups, and neither call stands alone under
a test of the rank.

The fix: one order for all ranks.

    -    if rank % 2:
    -        sync(dp); sync(tp)
    -    else:
    -        sync(tp); sync(dp)
    +    sync(tp); sync(dp)
)";

}  // namespace

extern const Detector collective_order;
const Detector collective_order = {.kind = "collective-order",
                                   .title = "Two groups are used in different order",
                                   .explanation = kExplanation,
                                   .detect = detect,
                                   .specificity = kMechanism};

}  // namespace ddpdoctor::detectors
