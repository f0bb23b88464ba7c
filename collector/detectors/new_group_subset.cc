// SPDX-License-Identifier: Apache-2.0
// new_group is called by its members only: every rank must call it, else groups get different names
// on different ranks and one of the next waits.
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/agreement.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/source_path.h"
#include "collector/detectors/wording.h"

namespace ddpdoctor::detectors {
namespace {

// A call of new_group in the source that only some ranks reach.
std::optional<Branch> guarded_new_group(const model::JobModel& job) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      const std::string_view code = base::trim(text);
      if (code.starts_with("#") || code.find("new_group(") == std::string_view::npos) {
        continue;
      }
      for (const python_source::Block& block : python_source::deciding_branches(lines, number)) {
        if (python_source::dependence(block.condition, lines, block.line) ==
            python_source::Dependence::kRank) {
          std::string function;
          for (const python_source::Block& around : python_source::enclosing(lines, number)) {
            if (around.kind == python_source::BlockKind::kFunction && function.empty()) {
              function = around.condition;
            }
          }
          return Branch{.where = {.file = file, .line = block.line, .function = function},
                        .condition = block.condition,
                        .on = python_source::Dependence::kRank,
                        .leads_to_ours = true,
                        .guarded = {.file = file, .line = number, .function = function}};
        }
      }
    }
  }
  return std::nullopt;
}

bool in_new_group(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kNewGroup;
}

bool is_observed(const graph::Standing& standing) {
  return standing.thread != nullptr && !in_new_group(standing);
}

// Those who came to new_group and those who are elsewhere: the fewer are odd. In a tie those whom a
// test of the rank led there, else those who did not come.
model::RankSet odd_ranks(const model::RankSet& inside, const model::RankSet& outside,
                         bool guarded) {
  if (outside.empty()) {
    return {};
  }
  const bool few_inside =
      inside.size() < outside.size() || (guarded && inside.size() == outside.size());
  return few_inside ? inside : outside;
}

Findings detect(const graph::Examination& examination) {
  const model::RankSet inside = ranks_where(examination, in_new_group);
  const model::RankSet outside = ranks_where(examination, is_observed);
  const std::optional<Branch> guarded = guarded_new_group(examination.job);
  const bool somebody_works =
      !ranks_where(examination, [](const graph::Standing& standing) {
         return !standing.waits_for_ranks() && (standing.on_cpu || standing.moved);
       }).empty();
  if (inside.empty() || !may_hang(examination) || somebody_works || (outside.empty() && !guarded)) {
    return {};
  }
  Finding finding;
  finding.kind = "new-group-subset";
  finding.confidence = guarded ? Confidence::kCertain : Confidence::kLikely;
  if (!unobserved_ranks(examination).empty()) {
    finding.confidence = Confidence::kPossible;
  }
  finding.culprits = odd_ranks(inside, outside, guarded.has_value());
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  if (guarded) {
    finding.locations.push_back(
        location(guarded->guarded, inside, "only some ranks come to this call"));
    finding.locations.push_back(location(guarded->where, {}, "the branch that separates them"));
  }
  for (const model::RankSet* side : {&inside, &outside}) {
    if (!side->empty()) {
      const graph::Standing* standing = examination.standing(side->front());
      finding.locations.push_back(location(
          standing->user, *side, fmt::format("{} {} here", said(*side), is_or_are(*side))));
    }
  }
  finding.summary =
      outside.empty()
          ? fmt::format(
                "{} wait in new_group for each other: an earlier new_group was called on some "
                "ranks only",
                said(inside))
          : fmt::format("{} {} in new_group, {} {} not: every rank must call it, members or not",
                        said(inside), is_or_are(inside), said(outside), is_or_are(outside));
  finding.fix =
      "Call new_group() on every rank of the job, in the same order, also on those that are no "
      "members; keep the result where it is needed.";
  add_whereabouts(finding, examination, inside);
  add_whereabouts(finding, examination, outside);
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: start-up stands still; some ranks are in new_group (waiting in the store), the others are in a collective or in the next
new_group.

Why: new_group is itself collective over the whole world. Ranks that skip it number their groups differently from then on, and connect
to the wrong partners one group later.

How it is recognised: some ranks stand in new_group and others do not, or all do and the source calls an earlier new_group under a test of
the rank.

The fix: all ranks create all groups.

    -    if rank < 2:
    -        group = dist.new_group([0, 1])
    +    group = dist.new_group([0, 1])
)";

}  // namespace

extern const Detector new_group_subset;
const Detector new_group_subset = {.kind = "new-group-subset",
                                   .title = "new_group was called on some ranks only",
                                   .explanation = kExplanation,
                                   .detect = detect,
                                   .specificity = kPlaceOfCause};

}  // namespace ddpdoctor::detectors
