// SPDX-License-Identifier: Apache-2.0
// new_group is called by its members only: every rank must call it, else groups get different names
// on different ranks and one of the next waits.
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/agreement.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/source_path.h"
#include "collector/detectors/wording.h"
#include "collector/model/questions.h"

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

/// Torch numbers groups as a rank makes them; absent where the name is a hash or was not read.
std::optional<int> number_of_group(const graph::Standing& standing) {
  const model::Frame* helper =
      standing.thread == nullptr
          ? nullptr
          : model::find_python_frame(*standing.thread, "_new_process_group_helper");
  for (std::size_t i = 0; helper != nullptr && i < helper->locals.size(); ++i) {
    const auto& [name, value] = helper->locals[i];
    std::string_view digits = value;  // '2'
    while (digits.starts_with('\'') || digits.starts_with('"')) {
      digits = digits.substr(1);
    }
    while (digits.ends_with('\'') || digits.ends_with('"')) {
      digits.remove_suffix(1);
    }
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (name == "group_name" && error == std::errc() && end == digits.data() + digits.size()) {
      return number;
    }
  }
  return std::nullopt;
}

// All are in new_group: who makes a group of a lower number has left one out.
model::RankSet who_left_one_out(const graph::Examination& examination) {
  std::map<int, model::RankSet> by_number;
  for (const graph::Standing& standing : examination.standings) {
    if (const auto number = in_new_group(standing) ? number_of_group(standing) : std::nullopt) {
      by_number[*number].insert(standing.rank);
    }
  }
  return by_number.size() > 1 ? by_number.begin()->second : model::RankSet{};
}

// Those who came to new_group and those who are elsewhere: the fewer are odd. In a tie those whom a
// test of the rank led there, else those who did not come.
model::RankSet odd_ranks(const model::RankSet& inside, const model::RankSet& outside,
                         bool guarded) {
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
  finding.culprits = outside.empty() ? who_left_one_out(examination)
                                     : odd_ranks(inside, outside, guarded.has_value());
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
