// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/ras_counts.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

bool is_counted_by_ras(const model::JobModel& job, std::string_view group) {
  const auto facts = model::facts(job, "nccl-ras");
  return std::any_of(facts.begin(), facts.end(),
                     [group](const model::Fact* fact) { return fact->text("group") == group; });
}

bool is_one_ras_answer(const graph::Examination& examination, std::string_view group) {
  return !examination.still() && model::latest(examination.job) == nullptr &&
         is_counted_by_ras(examination.job, group);
}

bool few_are_ahead(const graph::Examination& examination, std::string_view group) {
  if (!is_one_ras_answer(examination, group)) {
    return false;
  }
  std::map<std::int64_t, std::size_t> ranks;  // by number of the newest call
  std::size_t all = 0;
  for (const auto& [rank, calls] : examination.history.ranks(group)) {
    ++ranks[calls.back()->sequence];
    ++all;
  }
  return ranks.size() > 1 && ranks.rbegin()->second * 2 < all;
}

std::optional<Finding> counted_once(const graph::Examination& examination) {
  for (const graph::GroupView& view : examination.groups) {
    std::map<std::int64_t, model::RankSet> at;
    for (const auto& [rank, calls] : examination.history.ranks(view.group.id)) {
      at[calls.back()->sequence].insert(rank);
    }
    if (at.size() < 2 || !is_one_ras_answer(examination, view.group.id)) {
      continue;
    }
    Finding finding;
    finding.kind = "undetermined";
    finding.confidence = Confidence::kPossible;
    finding.waiting = at.rbegin()->second;
    model::RankSet behind;
    for (const auto& [sequence, ranks] : at) {
      behind = ranks == finding.waiting ? behind : behind.united(ranks);
    }
    finding.summary = fmt::format(
        "{} launched fewer collectives than {}; one answer of NCCL RAS cannot tell a hang from a "
        "normal step",
        ranks_do(behind, "has", "have"), said(finding.waiting));
    finding.fix = fmt::format(
        "Run `ncclras` again after 10 s. If it shows the same numbers, run `ddpdoctor attach PID` "
        "on the node{} of {}.",
        behind.size() == 1 ? "" : "s", said(behind));
    add_whereabouts(finding, examination, behind.united(finding.waiting));
    return finding;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
