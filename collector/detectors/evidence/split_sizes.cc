// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/split_sizes.h"

#include <map>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
std::string split_pair(const graph::Examination& examination, const graph::Divergence& divergence) {
  const auto* group = model::group(examination.job, divergence.group);
  const auto ranks = group == nullptr ? std::vector<model::Rank>() : group->ranks;
  const auto call_of = [&](std::size_t at) {
    return examination.history.at(divergence.group, ranks[at], divergence.sequence);
  };
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    const model::CollectiveCall* sender = call_of(from);
    if (sender == nullptr || !sender->splits || sender->splits->size() != ranks.size()) {
      continue;
    }
    for (std::size_t to = 0; to < ranks.size(); ++to) {
      const model::CollectiveCall* receiver = call_of(to);
      if (receiver != nullptr && receiver->output_splits &&
          receiver->output_splits->size() == ranks.size() &&
          (*receiver->output_splits)[from] != (*sender->splits)[to]) {
        return fmt::format("rank {} sends {} elements to rank {}, which expects {}, in {}",
                           ranks[from], (*sender->splits)[to], ranks[to],
                           (*receiver->output_splits)[from], call_name(examination.job, *sender));
      }
    }
  }
  return {};
}

std::optional<Finding> mismatched_sums(const graph::Examination& examination,
                                       const graph::GroupView& view) {
  std::int64_t sent = 0;
  std::int64_t expected = 0;
  const model::CollectiveCall* one = nullptr;
  model::RankSet ranks;
  for (const model::Rank rank : view.group.ranks) {
    const graph::RankProgress* const progress = view.progress_of(rank);
    const model::CollectiveCall* call =
        progress == nullptr ? nullptr
                            : examination.history.at(view.group.id, rank, progress->enqueued);
    const bool comparable = call != nullptr && !model::is_over(call->state) && !call->splits &&
                            call->sent_elements && call->expected_elements &&
                            (one == nullptr || one->sequence == call->sequence);
    if (!comparable || __builtin_add_overflow(sent, *call->sent_elements, &sent) ||
        __builtin_add_overflow(expected, *call->expected_elements, &expected)) {
      return std::nullopt;
    }
    one = call;
    ranks.insert(rank);
  }
  if (one == nullptr || sent == expected || ranks.size() < 2) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = "mismatched-shape";
  finding.confidence = examination.still() ? Confidence::kLikely : Confidence::kPossible;
  finding.waiting = waiting_ranks(examination);
  finding.summary =
      fmt::format("{} send {} elements together in {} and expect {}: the splits of some do not fit",
                  said(ranks), sent, call_name(examination.job, *one), expected);
  finding.fix =
      "Exchange the split sizes first (all_to_all_single of the counts): what a rank sends to "
      "another must be what that one expects.";
  std::map<model::CallSite, model::RankSet> places;
  for (const model::Rank rank : ranks) {
    const model::CollectiveCall* call = examination.history.at(view.group.id, rank, one->sequence);
    finding.evidence.push_back(
        {.rank = rank,
         .text = fmt::format("rank {} sends {} elements and expects {}", rank, *call->sent_elements,
                             *call->expected_elements)});
    places[call->call_site].insert(rank);
  }
  for (const auto& [site, there] : places) {
    if (site.known()) {
      finding.locations.push_back(
          location(site, there, fmt::format("{} {} in it here", said(there), is_or_are(there))));
    }
  }
  return finding;
}

}  // namespace ddpdoctor::detectors
