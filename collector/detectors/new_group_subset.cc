// SPDX-License-Identifier: Apache-2.0
// new_group() is called only by the group's members: every rank must call it; otherwise groups get
// different names on different ranks and a later one hangs.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/group_numbers.h"
#include "collector/detectors/evidence/roll_calls.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/work_in_log.h"
#include "collector/detectors/partings/cause.h"
#include "collector/detectors/partings/rank_values.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors::new_group_subset {
namespace {

constexpr std::string_view kFix =
    "Call new_group() on every rank in the same order, including ranks that are not members.";

bool calls_new_group(std::string_view line) {
  const std::string_view code = base::trim(line);
  return !code.starts_with("#") && code.find("new_group(") != std::string_view::npos;
}

/// A call of new_group() that only some ranks reach.
struct Guard {
  model::CallSite call;
  model::CallSite where;  // line of the test
  std::string condition;
  bool holds = true;        // on the ranks that reach the call
  bool on_the_way = false;  // leads to the position of the ranks in new_group()
};

/// The test of the rank that leads to `site`.
std::optional<Guard> rank_guard(const model::JobModel& job, const model::CallSite& site) {
  const program::SourceText& lines = lines_of(job, site.file);
  for (const program::Block& block : program::deciding_branches(lines, site.line)) {
    const program::Origin origin = origin_of(job, lines, block);
    // Unknown, but compared with numbers: these show whether it excludes ranks.
    const bool compared =
        origin.source == program::Source::kUnknown && holds_for(block.condition, 0).has_value();
    if (dependence_of(origin) == program::Dependence::kRank || compared) {
      const bool within =
          block.kind != program::BlockKind::kElse && encloses(lines, block, site.line);
      return Guard{
          .call = site,
          .where = {.file = site.file, .line = block.line, .function = site.function},
          .condition = block.condition,
          .holds = within,
      };
    }
  }
  return std::nullopt;
}

/// The ranks that the test excludes; empty if it cannot be evaluated.
model::RankSet kept_away(const model::JobModel& job, const Guard& guard) {
  model::RankSet away;
  for (const model::Rank rank : model::all_ranks(job)) {
    const auto holds = holds_for(guard.condition, rank);
    if (!holds) {
      return {};
    }
    if (*holds != guard.holds) {
      away.insert(rank);
    }
  }
  return away;
}

/// "rank < 64" with eight ranks, "rank >= 0": a test that is the same on all ranks.
bool parts_nobody(const model::JobModel& job, const Guard& guard) {
  std::set<std::optional<bool>> answers;
  for (const model::Rank rank : model::all_ranks(job)) {
    answers.insert(holds_for(guard.condition, rank));
  }
  return answers.size() == 1 && answers.begin()->has_value();
}

bool in_new_group(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kNewGroup;
}

bool is_observed(const graph::Standing& standing) {
  return standing.thread != nullptr && !in_new_group(standing) && !is_elsewhere(standing);
}

/// On the path to the ranks inside, with none of the others on the same line.
std::optional<Guard> guard_on_the_way(const graph::Examination& examination,
                                      const model::RankSet& inside) {
  const graph::Standing* standing = inside.empty() ? nullptr : examination.standing(inside.front());
  for (std::size_t i = 0; standing != nullptr && i < standing->callers.size(); ++i) {
    const model::CallSite& site = standing->callers[i];
    const bool shared = std::any_of(
        examination.standings.begin(), examination.standings.end(), [&](const auto& other) {
          return !inside.contains(other.rank) &&
                 std::any_of(other.callers.begin(), other.callers.end(),
                             [&site](const auto& one) { return graph::same_line(one, site); });
        });
    auto guard = shared ? std::nullopt : rank_guard(examination.job, site);
    if (guard && !parts_nobody(examination.job, *guard)) {
      guard->call = standing->user;
      guard->on_the_way = true;
      return guard;
    }
  }
  return std::nullopt;
}

/// A call of new_group() that only some ranks reach: the one they are in, else any in the sources.
std::optional<Guard> guarded_new_group(const graph::Examination& examination,
                                       const model::RankSet& inside) {
  if (auto guard = guard_on_the_way(examination, inside)) {
    return guard;
  }
  for (const auto& [file, lines] : examination.job.sources) {
    for (const auto& [number, text] : lines) {
      if (!calls_new_group(text)) {
        continue;
      }
      const model::CallSite site{
          .file = file, .line = number, .function = function_around(lines, number)};
      auto guard = rank_guard(examination.job, site);
      if (guard && !parts_nobody(examination.job, *guard)) {
        return guard;
      }
    }
  }
  return std::nullopt;
}

/// The new_group() calls in the user's files.
std::vector<model::CallSite> new_groups(const model::JobModel& job) {
  std::vector<model::CallSite> calls;
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      if (calls_new_group(text)) {
        calls.push_back({.file = file, .line = number, .function = function_around(lines, number)});
      }
    }
  }
  return calls;
}

/// The ranks that skipped the group: those that the test excludes, else the members of only the
/// larger group. If each side has made a group of its own, all ranks.
model::RankSet who_left_out(const model::JobModel& job, const std::optional<Guard>& guarded,
                            const model::RankSet& one, const model::RankSet& other) {
  const model::RankSet away = guarded ? kept_away(job, *guarded) : model::RankSet{};
  if (!away.empty()) {
    return away;
  }
  const model::RankSet apart = one.minus(other).united(other.minus(one));
  const bool nested = one.minus(other).empty() || other.minus(one).empty();
  return nested ? apart : one.united(other);
}

Finding mixed_up(const graph::Examination& examination, const SharedName& shared,
                 const std::optional<Guard>& guarded) {
  const model::RankSet one(shared.one->ranks);
  const model::RankSet other(shared.other->ranks);
  Finding finding;
  finding.kind = "new-group-subset";
  finding.culprits = who_left_out(examination.job, guarded, one, other);
  finding.confidence =
      guarded || !examination.history.empty() ? Confidence::kCertain : Confidence::kLikely;
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  if (guarded) {
    finding.locations.push_back(location(guarded->call, {}, "only the members call this"));
    finding.locations.push_back(location(guarded->where, {}, "decides which ranks call it"));
  } else if (const auto made = new_groups(examination.job); !made.empty()) {
    finding.locations.push_back(location(made.front(), {}, "each rank creates only its own group"));
  }
  std::string name = group_name(examination.job, shared.one->id);
  name = name.starts_with("group") ? name : "group " + name;
  finding.summary = fmt::format(
      "{} is two different groups, of {} and of {}: only the members called new_group()", name,
      said(one), said(other));
  finding.evidence.push_back({.rank = (one.minus(other).empty() ? one : one.minus(other)).front(),
                              .text = fmt::format("{} has the members {}", name, said(one))});
  finding.evidence.push_back({.rank = (other.minus(one).empty() ? other : other.minus(one)).front(),
                              .text = fmt::format("{} has the members {}", name, said(other))});
  finding.fix = kFix;
  add_whereabouts(finding, examination, finding.waiting);
  return finding;
}

/// Ranks outside it also wait for ranks, and their source shows no other reason: this is the call
/// that not all make.
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

/// The ranks to correct, few or many: those excluded from a call that all must make, else those not
/// in it.
model::RankSet who_did_not_call(const graph::Examination& examination,
                                const std::optional<Guard>& guarded,
                                const std::optional<GroupNumbers>& numbers,
                                const model::RankSet& outside) {
  if (const model::RankSet away = guarded ? kept_away(examination.job, *guarded) : model::RankSet{};
      !away.empty()) {
    return away;
  }
  return numbers && !(guarded && guarded->on_the_way) ? numbers->behind : outside;
}

std::string told(const model::RankSet& culprits, const model::RankSet& inside,
                 const std::optional<Guard>& guarded) {
  const std::string wait = ranks_do(inside, "is waiting", "are waiting");
  if (culprits.empty()) {
    return fmt::format(
        "{} in new_group for each other: only some ranks called an earlier new_group", wait);
  }
  if (culprits.common(inside).empty() && (!guarded || guarded->on_the_way)) {
    return fmt::format("{} did not call new_group; {} in it", said(culprits), wait);
  }
  return fmt::format(
      "{} did not call new_group{}, but the other ranks did; {} in a later new_group because the "
      "group numbers differ",
      said(culprits), guarded ? placed(guarded->call) : std::string(), wait);
}

/// Two groups being created have one number: whichever rank skipped a call or made it out of order,
/// the ranks connect to the wrong partners.
Finding one_number_for_two(const graph::Examination& examination,
                           const std::vector<GroupMade>& groups) {
  Finding finding;
  finding.kind = "new-group-subset";
  finding.confidence =
      unobserved_ranks(examination).empty() ? Confidence::kCertain : Confidence::kPossible;
  finding.culprits = makers_of_their_own(examination, groups);
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  std::vector<std::string> each;
  for (const GroupMade& made : groups) {
    each.push_back(fmt::format("rank {} creates {}", made.by->rank, made.members));
    finding.locations.push_back(location(
        *made.by, fmt::format("rank {} creates group {} here", made.by->rank, made.number)));
  }
  finding.summary = fmt::format("ranks create group {} with different members: {}",
                                groups.front().number, fmt::join(each, ", "));
  finding.fix = kFix;
  add_whereabouts(finding, examination, finding.waiting);
  return finding;
}

/// The numbers alone are a proof: all ranks create one group, but with different numbers.
bool are_proof(const graph::Examination& examination, const std::optional<GroupNumbers>& numbers,
               const model::RankSet& outside) {
  return outside.empty() && numbers && numbers->one_group && examination.still();
}

/// The line that created or used the group which some ranks do not know.
void add_earlier_group(Finding& finding, const graph::Examination& examination,
                       const GroupNumbers& numbers) {
  const graph::Standing* const standing = examination.standing(numbers.behind.front());
  std::vector<model::CallSite> others;
  for (const model::CallSite& call : new_groups(examination.job)) {
    if (!graph::same_line(call, standing->user)) {
      others.push_back(call);
    }
  }
  if (others.size() == 1) {
    finding.locations.push_back(location(others.front(), {}, "the other call of new_group"));
  }
  const model::ProcessGroup* const group = numbers.unknown_behind;
  if (group == nullptr) {
    return;
  }
  const std::string name = group_name(examination.job, group->id);
  finding.evidence.push_back(
      {.rank = numbers.ahead.front(),
       .text = fmt::format("{} of {} exists only on {}", name, said(model::RankSet(group->ranks)),
                           said(numbers.ahead))});
  const graph::Calls& calls = examination.history.calls(group->id, numbers.ahead.front());
  if (!calls.empty() && calls.front()->call_site.known()) {
    finding.locations.push_back(
        location(calls.front()->call_site, {}, fmt::format("{} was used here", name)));
    if (const auto test = test_between(examination.job, calls.front()->call_site, numbers.behind,
                                       numbers.ahead)) {
      finding.locations.push_back(location(*test, {}, "decides which ranks use it"));
    }
  }
}

/// A test of the rank that excludes other ranks than those with fewer groups is not the cause.
bool is_refuted(const model::JobModel& job, const Guard& guard, const GroupNumbers& numbers) {
  const model::RankSet away = kept_away(job, guard);
  return !away.empty() && away != numbers.behind;
}

Findings detect(const graph::Examination& examination) {
  const model::RankSet inside = ranks_where(examination, in_new_group);
  const model::RankSet outside = ranks_where(examination, is_observed);
  if (const std::vector<GroupMade> clash = groups_of_one_number(examination);
      !clash.empty() && stuck(examination) == Confidence::kLikely) {
    return {one_number_for_two(examination, clash)};
  }
  const std::optional<GroupNumbers> numbers = group_numbers(examination);
  const bool proven = are_proof(examination, numbers, outside);
  std::optional<Guard> guarded = guarded_new_group(examination, inside);
  if (proven && guarded && is_refuted(examination.job, *guarded, *numbers)) {
    guarded.reset();
  }
  const bool somebody_works = !working_ranks(examination).empty();
  const auto shared = !proven && stuck(examination) ? shared_name(examination) : std::nullopt;
  if (shared && !is_default_group(examination.job, *shared)) {
    return {mixed_up(examination, *shared, guarded)};
  }
  if (inside.empty() || !may_hang(examination) || somebody_works ||
      (outside.empty() && !guarded && !proven)) {
    auto told = new_group_of_few(examination);
    return told ? Findings{*std::move(told)} : unseen_findings(examination, "new-group-subset");
  }
  Finding finding;
  finding.kind = "new-group-subset";
  finding.confidence = guarded || proven || is_what_all_wait_for(examination, outside)
                           ? Confidence::kCertain
                           : Confidence::kLikely;
  if (!unobserved_ranks(examination).empty()) {
    finding.confidence = Confidence::kPossible;
  }
  finding.culprits = who_did_not_call(examination, guarded, numbers, outside);
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  if (guarded) {
    finding.locations.push_back(location(guarded->call,
                                         guarded->on_the_way ? inside : model::RankSet{},
                                         "only some ranks call this"));
    finding.locations.push_back(location(guarded->where, {}, "decides which ranks call it"));
  } else if (proven) {
    add_earlier_group(finding, examination, *numbers);
  }
  for (const model::RankSet* side : {&inside, &outside}) {
    if (!side->empty()) {
      const graph::Standing* standing = examination.standing(side->front());
      finding.locations.push_back(location(standing->user, *side, is_here(*side, *standing)));
    }
  }
  finding.summary = told(finding.culprits, inside, guarded);
  finding.fix = kFix;
  add_whereabouts(finding, examination, inside);
  add_whereabouts(finding, examination, outside);
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: the start-up hangs; some ranks are in new_group (waiting in the store), the others are in a collective or in the next
new_group.

Why: new_group is itself a collective over all ranks of the job. Ranks that skip it number their groups differently from then on, and
connect to the wrong peers in the next group.

How ddpdoctor knows: some ranks are in new_group and others are not; or all are, and the source calls an earlier new_group under a
condition that tests the rank; or torch's log counts the ranks in its barrier; or the group that all ranks are creating has different
numbers on different ranks (a lazy `cached_property` that only some ranks used); or a group with one name has different members on
different ranks.

Fix: all ranks create all groups.

    -    if rank < 2:
    -        group = dist.new_group([0, 1])
    +    group = dist.new_group([0, 1])
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "new-group-subset",
                           .title = "new_group was called on some ranks only",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kPlaceOfCause};

}  // namespace ddpdoctor::detectors::new_group_subset
