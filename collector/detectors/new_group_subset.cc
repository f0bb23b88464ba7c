// SPDX-License-Identifier: Apache-2.0
// new_group is called by its members only: every rank must call it, else groups get different names
// on different ranks and one of the next waits.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/agreement.h"
#include "collector/detectors/cause.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/source_blocks.h"
#include "collector/detectors/source_path.h"
#include "collector/detectors/suspects.h"
#include "collector/detectors/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kFix =
    "Call new_group() on every rank of the job, in the same order, also on those that are no "
    "members; keep the result where it is needed.";

bool calls_new_group(std::string_view line) {
  const std::string_view code = base::trim(line);
  return !code.starts_with("#") && code.find("new_group(") != std::string_view::npos;
}

// A call of new_group in the source that only some ranks reach.
std::optional<Branch> guarded_new_group(const model::JobModel& job) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      if (!calls_new_group(text)) {
        continue;
      }
      for (const python_source::Block& block : python_source::deciding_branches(lines, number)) {
        if (python_source::dependence(block.condition, lines, block.line) ==
            python_source::Dependence::kRank) {
          const std::string function = function_around(lines, number);
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

/// Two groups of one name with other members: each side took the next free number for its own.
struct SharedName {
  const model::ProcessGroup* one = nullptr;
  const model::ProcessGroup* other = nullptr;  // its id: "3:1,3", the name and the members
};

/// A name that two groups share, with ranks that wait in one of them.
std::optional<SharedName> shared_name(const graph::Examination& examination) {
  for (const model::ProcessGroup& other : examination.job.groups) {
    const std::string_view name = model::name_in_id(other.id);
    const model::ProcessGroup* one =
        name == other.id ? nullptr : model::group(examination.job, name);
    if (one == nullptr || one->ranks.size() < 2 || other.ranks.size() < 2 ||
        one->ranks == other.ranks) {
      continue;
    }
    const model::RankSet stuck_there = ranks_where(examination, [&](const auto& standing) {
      return standing.waits_for_ranks() && standing.call &&
             (standing.call->group == one->id || standing.call->group == other.id);
    });
    if (!stuck_there.empty()) {
      return SharedName{.one = one, .other = &other};
    }
  }
  return std::nullopt;
}

/// The first call of new_group in the user's files.
std::optional<model::CallSite> any_new_group(const model::JobModel& job) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      if (calls_new_group(text)) {
        return model::CallSite{.file = file, .line = number, .function = {}};
      }
    }
  }
  return std::nullopt;
}

Finding mixed_up(const graph::Examination& examination, const SharedName& shared,
                 const std::optional<Branch>& guarded) {
  const model::RankSet one(shared.one->ranks);
  const model::RankSet other(shared.other->ranks);
  Finding finding;
  finding.kind = "new-group-subset";
  finding.confidence = guarded ? Confidence::kCertain : Confidence::kLikely;
  finding.waiting = waiting_ranks(examination);
  if (guarded) {
    finding.locations.push_back(
        location(guarded->guarded, {}, "only the members come to this call"));
    finding.locations.push_back(location(guarded->where, {}, "the branch that separates them"));
  } else if (const auto made = any_new_group(examination.job)) {
    finding.locations.push_back(location(*made, {}, "each rank makes only a group of its own"));
  }
  const std::string name = group_name(examination.job, shared.one->id);
  finding.summary = fmt::format(
      "{} is two groups: of {} and of {}; new_group was called by members only, and they mix "
      "each other up",
      name, said(one), said(other));
  finding.evidence.push_back(
      {.rank = one.front(), .text = fmt::format("{} has the members {}", name, said(one))});
  finding.evidence.push_back(
      {.rank = other.front(), .text = fmt::format("{} has the members {}", name, said(other))});
  finding.fix = kFix;
  add_whereabouts(finding, examination, finding.waiting);
  return finding;
}

// Those who came to new_group and those who are elsewhere: the fewer are odd. In a tie those whom a
// test of the rank led there, else those who did not come.
model::RankSet odd_ranks(const model::RankSet& inside, const model::RankSet& outside,
                         bool guarded) {
  const bool few_inside =
      inside.size() < outside.size() || (guarded && inside.size() == outside.size());
  return few_inside ? inside : outside;
}

/// Those who are not in it wait for ranks as well, and their source has no reason for it of its
/// own: the call that is not made by all is this one.
bool is_what_all_wait_for(const graph::Examination& examination, const model::RankSet& outside) {
  if (outside.empty() || !outside.minus(waiting_ranks(examination)).empty() ||
      stuck(examination) != Confidence::kLikely) {
    return false;
  }
  const std::vector<Explanation> others = explanations(examination);
  return std::all_of(others.begin(), others.end(), [](const Explanation& one) {
    return one.cause == Cause::kMissing || one.cause == Cause::kExtra || one.cause == Cause::kNone;
  });
}

Findings detect(const graph::Examination& examination) {
  const model::RankSet inside = ranks_where(examination, in_new_group);
  const model::RankSet outside = ranks_where(examination, is_observed);
  const std::optional<Branch> guarded = guarded_new_group(examination.job);
  const bool somebody_works = !working_ranks(examination).empty();
  if (const auto shared =
          inside.empty() && stuck(examination) ? shared_name(examination) : std::nullopt) {
    return {mixed_up(examination, *shared, guarded)};
  }
  if (inside.empty() || !may_hang(examination) || somebody_works || (outside.empty() && !guarded)) {
    return {};
  }
  Finding finding;
  finding.kind = "new-group-subset";
  finding.confidence = guarded || is_what_all_wait_for(examination, outside) ? Confidence::kCertain
                                                                             : Confidence::kLikely;
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
  finding.fix = kFix;
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
the rank; or one name of a group has other members on other ranks.

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
