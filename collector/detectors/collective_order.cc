// SPDX-License-Identifier: Apache-2.0
// Two groups used in different order: each rank waits in one group for a rank that waits for it in
// another group.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/group_numbers.h"
#include "collector/detectors/evidence/groups_by_source.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/calls_at.h"
#include "collector/detectors/partings/item_order.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/partings/two_groups.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/history.h"
#include "collector/program/origin/items.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::detectors::collective_order {
namespace {

/// The shortest cycle of waiting ranks, back to the first; empty if the ranks are in none.
std::vector<std::string> cycle_of(const graph::Examination& examination,
                                  const model::RankSet& ranks) {
  std::vector<std::string> shortest;
  for (const auto& cycle : examination.waits.cycles()) {
    const bool ours = std::any_of(cycle.begin(), cycle.end(), [&ranks](const std::string& node) {
      return std::any_of(ranks.begin(), ranks.end(), [&node](model::Rank rank) {
        return node == fmt::format("rank:{}", rank);
      });
    });
    if (ours && (shortest.empty() || cycle.size() < shortest.size())) {
      shortest = cycle;
    }
  }
  return shortest;
}

/// The two groups that the summary names: those in which ranks of the cycle wait.
std::pair<std::string, std::string> groups_of(const graph::Examination& examination,
                                              const std::vector<std::string>& cycle,
                                              const std::vector<Explanation>& all) {
  std::vector<std::string> groups;
  for (const graph::Standing& standing : examination.standings) {
    const bool in_cycle =
        std::find(cycle.begin(), cycle.end(), fmt::format("rank:{}", standing.rank)) != cycle.end();
    if (in_cycle && standing.call &&
        std::find(groups.begin(), groups.end(), standing.call->group) == groups.end()) {
      groups.push_back(standing.call->group);
    }
  }
  if (groups.size() < 2) {
    groups = {all.front().parting.group, all.back().parting.group};
  }
  return {group_name(examination.job, groups[0]), group_name(examination.job, groups[1])};
}

/// ": rank 0 is in all_reduce #4 of a0, rank 1 is in all_reduce #4 of b0"; a longer cycle in the
/// graph's words.
std::string circle_of_waits(const graph::Examination& examination,
                            const std::vector<std::string>& cycle) {
  std::vector<std::string> calls;
  for (const graph::Standing& standing : examination.standings) {
    if (standing.call && std::find(cycle.begin(), cycle.end(),
                                   fmt::format("rank:{}", standing.rank)) != cycle.end()) {
      calls.push_back(fmt::format("rank {} is in {}", standing.rank,
                                  call_name(examination.job, *standing.call)));
    }
  }
  if (cycle.empty()) {
    return {};
  }
  return ": " + (calls.size() == 2 ? fmt::format("{}", fmt::join(calls, ", "))
                                   : graph::cycle_sentence(examination.waits, cycle));
}

/// Places of the culprits, those in the cycle that the summary names first.
void add_places(const graph::Examination& examination, const std::vector<std::string>& cycle,
                Finding& finding) {
  constexpr std::size_t kMostPlaces = 4;
  finding.locations.clear();
  std::vector<model::Rank> ranks = finding.culprits.values();
  std::stable_partition(ranks.begin(), ranks.end(), [&cycle](model::Rank rank) {
    return std::find(cycle.begin(), cycle.end(), fmt::format("rank:{}", rank)) != cycle.end();
  });
  std::map<std::pair<model::CallSite, std::string>, model::RankSet> places;
  std::vector<std::pair<model::CallSite, std::string>> order;  // by the first rank of each
  for (const model::Rank rank : ranks) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing != nullptr && standing->user.known()) {
      const std::string in =
          standing->call ? ", in " + call_name(examination.job, *standing->call) : std::string();
      const auto [at, is_new] = places.try_emplace({standing->user, in}, model::RankSet{rank});
      at->second.insert(rank);
      if (is_new) {
        order.push_back(at->first);
      }
    }
  }
  for (const auto& place : order) {
    if (finding.locations.size() < kMostPlaces) {
      const model::RankSet& there = places.at(place);
      finding.locations.push_back(
          location(place.first, there, ranks_do(there, "is here", "are here") + place.second));
    }
  }
}

/// All ranks run one call, and it reached different functions: a role's class, an item of a table.
void add_ways(const graph::Examination& examination, const Explanation& explanation,
              Finding& finding) {
  const auto& fork = explanation.fork;
  if (!fork || !graph::same_line(fork->ours, fork->theirs) || fork->below_ours.empty() ||
      fork->below_theirs.empty()) {
    return;
  }
  const model::JobModel& job = examination.job;
  const program::Node call = call_to(job, fork->ours, fork->below_ours.back());
  if (!call || call != call_to(job, fork->theirs, fork->below_theirs.back())) {
    return;
  }
  std::map<std::string, model::RankSet> reached;
  for (const model::Rank rank : finding.culprits) {
    const graph::Standing* standing = examination.standing(rank);
    const Path path = standing == nullptr ? Path{} : standing->callers;
    for (std::size_t i = 1; i < path.size(); ++i) {
      if (graph::same_line(path[i], fork->ours)) {
        reached[path[i - 1].function].insert(rank);
        break;
      }
    }
  }
  if (reached.size() < 2) {
    return;
  }
  Location where = location(fork->ours, {}, "runs different functions");
  for (const auto& [function, ranks] : reached) {
    where.outcomes.push_back(
        {.ranks = ranks,
         .expression = std::string(call.field(program::Field::kFunction).text()),
         .value = function,
         .reason = fmt::format("{} in it", is_or_are(ranks))});
  }
  finding.locations.push_back(std::move(where));
}

/// Each of the ranks has called from here in both groups before.
bool uses_both(const graph::Examination& examination, const model::RankSet& ranks, const Path& path,
               const std::string& one, const std::string& other) {
  return std::all_of(ranks.begin(), ranks.end(), [&](model::Rank rank) {
    const auto from_here = [&](const std::string& group) {
      const graph::Calls& calls = examination.history.calls(group, rank);
      return std::any_of(calls.begin(), calls.end(), [&path](const auto* call) {
        return same_path(graph::callers_of(*call), path);
      });
    };
    return from_here(one) && from_here(other);
  });
}

/// The ranks wait in both groups in one call, in one loop around it, and nothing shows that the
/// loop has one order on every rank: that order decides.
void add_own_order(const graph::Examination& examination, const Parting& one, const Parting& other,
                   Finding& finding) {
  const model::JobModel& job = examination.job;
  const Path& path = one.rest.path;
  if (one.group == other.group || !same_path(path, other.rest.path) ||
      !uses_both(examination, finding.culprits, path, one.group, other.group)) {
    return;
  }
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto& lines = lines_of(job, path[i].file);
    const auto loop = program::loop_around(lines, path[i].line);
    if (!loop) {
      continue;
    }
    const Path callers(path.begin() + static_cast<std::ptrdiff_t>(i) + 1, path.end());
    const program::Origin origin = origin_of(job, lines, *loop, callers);
    const bool steps = loop->kind != program::BlockKind::kFor ||
                       program::items_of(lines, loop->line, job.sources) ==
                           program::Items::kBatches;  // an outer loop is another step
    const bool own = program::is_own(origin.source);
    if (steps || (!own && origin.source != program::Source::kUnknown)) {
      return;
    }
    model::CallSite header = path[i];
    header.line = loop->line;
    finding.locations.push_back(location(header, {}, "decides which group comes first"));
    if (own) {
      finding.evidence.push_back(
          {.rank = std::nullopt,
           .text = fmt::format("the order of {} depends on {}", in_backquotes(loop->condition),
                               program::name_of(origin.source))});
    }
    return;
  }
}

/// From stacks alone: the groups are unknown, but it cannot be a single group.
void tell_calls_that_did_not_meet(const graph::Examination& examination, const Parting& parting,
                                  Finding& finding) {
  const auto there = [](const Side& side) {
    return fmt::format("{} in {}{}", said(side.ranks), side.operation, placed(side.site()));
  };
  finding.confidence = Confidence::kPossible;
  finding.summary = fmt::format("{} are waiting in two different calls: {}, {}",
                                said(finding.culprits), there(parting.odd), there(parting.rest));
  finding.evidence = {{.rank = std::nullopt,
                       .text = fmt::format("two {} calls in one group complete each other: these "
                                           "are in two groups, or their sizes differ",
                                           parting.odd.operation)}};
  finding.fix =
      "Check that every rank calls the collectives of both groups in the same order; take a flight "
      "recorder dump to see the groups.";
  add_places(examination, {}, finding);
}

/// Nothing is recorded: the source shows in which group each rank launched its last call.
Finding of_the_source(const graph::Examination& examination, const TwoGroups& apart) {
  const auto there = [](const RanksInGroup& one) {
    return fmt::format("{} in {} ({})", said(one.ranks), one.call.operation,
                       line_of(one.call.callers.front()));
  };
  Finding finding;
  finding.kind = "collective-order";
  finding.confidence = Confidence::kPossible;
  finding.culprits = apart.first.ranks.united(apart.second.ranks);
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  finding.summary =
      fmt::format("{} may be waiting for each other in two groups with the same members: {}, {}",
                  said(finding.culprits), there(apart.first), there(apart.second));
  for (const RanksInGroup* one : {&apart.first, &apart.second}) {
    finding.locations.push_back(location(one->call.callers.front(), one->ranks,
                                         fmt::format("the last call of {}", said(one->ranks))));
  }
  finding.fix =
      "Call the collectives of both groups in the same order, and equally often, on every rank. "
      "Start the job with `ddpdoctor run -- …` to record which rank called what.";
  return finding;
}

Findings detect(const graph::Examination& examination) {
  const auto order = item_order(examination);
  if (order && order->container != "set") {  // that of a set is order-from-set
    Finding finding = finding_of_items(examination, *order);
    finding.kind = "collective-order";
    return {std::move(finding)};
  }
  const std::vector<Explanation> all = explanations(examination, Cause::kOrder);
  if (const auto apart = all.empty() ? groups_by_source(examination) : std::nullopt) {
    return {of_the_source(examination, *apart)};
  }
  if (all.empty() || shared_name(examination)) {
    return {};  // two groups with one name are not an order of groups: new-group-subset reports it
  }
  Finding finding = finding_of(examination, all.front());
  finding.kind = "collective-order";
  model::RankSet missing;
  model::RankSet waiting;
  for (const Explanation& explanation : all) {
    missing = missing.united(explanation.parting.odd.ranks);
    waiting = waiting.united(explanation.parting.rest.ranks);
  }
  // A rank for which no other group waits has no order of its own.
  finding.culprits =
      missing.common(waiting).empty() ? missing.united(waiting) : missing.common(waiting);
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  if (would_have_met(examination, all.front().parting)) {
    tell_calls_that_did_not_meet(examination, all.front().parting, finding);
    return {finding};
  }
  const std::vector<std::string> cycle = cycle_of(examination, finding.culprits);
  const auto [first, second] = groups_of(examination, cycle, all);
  finding.summary = fmt::format("{} use {} and {} in opposite order{}", said(finding.culprits),
                                first, second, circle_of_waits(examination, cycle));
  finding.fix =
      "Call the collectives of both groups in the same order on every rank; or wait() for the "
      "first before the second starts.";
  add_places(examination, cycle, finding);
  const bool chosen = std::any_of(all.begin(), all.end(), [&](const Explanation& one) {
    return add_choice(examination, one, "decides which group comes first", finding);
  });
  if (!chosen) {
    add_ways(examination, all.front(), finding);
    add_own_order(examination, all.front().parting, all.back().parting, finding);
  }
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: every rank is in a collective, sequence numbers are consistent in each group, and nothing completes.

Why: rank A calls group 1 first and group 2 next; rank B calls group 2 first. Each waits for the other in a different group. With NCCL
the same happens when the collectives of two communicators are launched in a different order on one device. Or one loop calls a
collective for each name, and the names are in another order on each rank: a dict that was filled as the data came, a list sorted by
a value of the rank's own.

How ddpdoctor knows: the chain of waiting ranks is a cycle over two groups, and neither call depends on a condition that tests only
the rank. Without records: the ranks' last calls are in two groups that the source makes with the same members (possible).

Fix: use one order on all ranks.

    -    if rank % 2:
    -        sync(dp); sync(tp)
    -    else:
    -        sync(tp); sync(dp)
    +    sync(tp); sync(dp)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "collective-order",
                           .title = "Two groups are used in different order",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kMechanism};

}  // namespace ddpdoctor::detectors::collective_order
