// SPDX-License-Identifier: Apache-2.0
// broadcast, reduce, gather or scatter with different roots: some ranks complete, the others wait
// for data that no rank sends.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/disagreed.h"
#include "collector/detectors/partings/side_questions.h"

namespace ddpdoctor::detectors::mismatched_root {
namespace {

std::string root_name(model::Rank root) {
  return fmt::format("rank {}", root);
}

Findings from_records(const graph::Examination& examination) {
  Findings findings;
  for (const graph::GroupView& view : examination.groups) {
    const graph::Divergence* divergence = view.disagreement(graph::Disagreement::kRoot);
    if (divergence == nullptr) {
      continue;
    }
    const Disagreed disagreed = disagreed_at(examination, *divergence);
    Finding finding = finding_of(examination, *divergence, disagreed);
    finding.kind = "mismatched-root";
    finding.summary = fmt::format("{} passed rank {} as the root of {}, but {} passed rank {}",
                                  said(disagreed.named), *disagreed.odd_call->root,
                                  call_name(examination.job, *disagreed.rest_call),
                                  said(disagreed.rest), *disagreed.rest_call->root);
    finding.fix = "Pass the same src or dst (a global rank) on every rank.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

// Ranks that have completed got their data from the one rank that passed itself as root.
void vote_for_sender(const graph::Examination& examination, std::int64_t sequence,
                     std::map<model::Rank, std::string>& roots) {
  std::set<std::string> named;
  std::set<std::string> senders;
  for (const auto& [rank, root] : roots) {
    if (examination.standing(rank)->call->sequence == sequence) {
      named.insert(root);
      if (root == root_name(rank)) {
        senders.insert(root);
      }
    }
  }
  if (named.size() < 2 || senders.size() != 1) {
    return;
  }
  for (auto& [rank, root] : roots) {
    if (examination.standing(rank)->call->sequence > sequence) {
      root = *senders.begin();
    }
  }
}

// Arguments of the blocked calls. A rank that the mismatch did not block may be one call further on
// the same line: it has a vote but proves nothing.
std::optional<Finding> from_stacks(const graph::Examination& examination) {
  std::map<model::Rank, std::string> roots;
  const graph::Standing* one = nullptr;
  for (const graph::Standing& standing : examination.standings) {
    if (standing.activity != graph::Activity::kCollective || !standing.call ||
        !standing.call->root) {
      continue;
    }
    if (one != nullptr && (one->call->operation != standing.call->operation ||
                           one->call->group != standing.call->group ||
                           (one->call->sequence != standing.call->sequence &&
                            (!standing.user.known() || one->user != standing.user)))) {
      return std::nullopt;
    }
    const bool first = one == nullptr || standing.call->sequence < one->call->sequence;
    one = first ? &standing : one;
    roots[standing.rank] = root_name(*standing.call->root);
  }
  if (one != nullptr && one->call->sequence) {
    vote_for_sender(examination, *one->call->sequence, roots);
  }
  const std::vector<Camp> all = camps(roots);
  if (all.size() < 2 || !roots_contradict(examination, one->call->group) ||
      !may_hang(examination)) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = "mismatched-root";
  // Equal arguments, and the same call.
  finding.confidence = confidence_of(one->call->sequence ? 2 : 1);
  finding.culprits = minority(all);
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  finding.summary = fmt::format(
      "{} passed {} as the root of {}, but {} passed {}", said(all[1].ranks), all[1].key,
      call_name(examination.job, *one->call), said(all[0].ranks), all[0].key);
  finding.fix = "Pass the same src or dst (a global rank) on every rank.";
  for (const Camp* camp : {&all[1], &all[0]}) {
    const graph::Standing* standing = examination.standing(camp->ranks.front());
    finding.locations.push_back(location(
        standing->user, camp->ranks, fmt::format("{} passed {}", said(camp->ranks), camp->key)));
  }
  return finding;
}

Findings detect(const graph::Examination& examination) {
  Findings findings = from_records(examination);
  if (findings.empty()) {
    if (auto finding = from_stacks(examination)) {
      findings.push_back(std::move(*finding));
    }
  }
  return findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: some ranks continue; the others wait in a broadcast, reduce, gather or scatter.

Why: every rank names the root. A rank that believes it is the root only sends and may continue; a rank that expects the data from a
different rank waits forever. Often a group rank was passed where a global rank is expected.

How ddpdoctor knows: group and sequence number are the same, but the root differs in the records, or src/dst differ in the blocked
calls.

Fix:

    -    dist.broadcast(t, src=dist.get_rank(group), group=group)
    +    dist.broadcast(t, src=dist.get_global_rank(group, 0), group=group)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "mismatched-root",
                           .title = "Ranks pass different roots",
                           .explanation = kExplanation,
                           .detect = detect};

}  // namespace ddpdoctor::detectors::mismatched_root
