// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/parting.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/group_numbers.h"
#include "collector/detectors/evidence/ras_counts.h"
#include "collector/detectors/partings/group_members.h"
#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/lone_waits.h"
#include "collector/detectors/partings/mpi_partings.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/standing_camps.h"
#include "collector/detectors/partings/two_groups.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
using graph::Disagreement;
using graph::Divergence;
using graph::Examination;
using graph::GroupView;
using graph::Standing;

bool in_collective(const Standing& standing) {
  return standing.waits_for_ranks() && standing.call.has_value() &&
         standing.activity != Activity::kPointToPoint;
}

bool stands_in_group(const Standing& standing, const std::string& group) {
  return in_collective(standing) && standing.call->group == group;
}

/// The rank's stack is in exactly this call, so the stack is the better path.
bool stands_in_call(const Standing* standing, const model::CollectiveCall& call) {
  return standing != nullptr && standing->call && standing->call->group == call.group &&
         standing->call->sequence == call.sequence && !standing->callers.empty();
}

Side side_of_call(const Examination& examination, const model::RankSet& ranks,
                  const model::CollectiveCall* call) {
  Side side{
      .ranks = ranks, .operation = call->operation, .path = {}, .standing = nullptr, .call = call};
  side.standing = examination.standing(call->rank);
  side.path =
      stands_in_call(side.standing, *call) ? side.standing->callers : graph::callers_of(*call);
  return side;
}

// The side of the ranks that are elsewhere, at the line where most of them are.
Side side_of_standing(const Examination& examination, const model::RankSet& ranks) {
  Side side{.ranks = ranks, .operation = {}, .path = {}, .standing = nullptr, .call = nullptr};
  std::map<model::Rank, std::string> said;
  for (const model::Rank rank : ranks) {
    const Standing* standing = examination.standing(rank);
    if (standing != nullptr && standing->activity != Activity::kUnobserved) {
      said[rank] = place_key(*standing);
    }
  }
  if (said.empty()) {
    return side;
  }
  side.standing = examination.standing(camps(said).front().ranks.front());
  side.path = side.standing->callers;
  if (in_collective(*side.standing)) {
    side.operation = side.standing->call->operation;
  }
  return side;
}

bool has_stack(const Side& side) {
  return side.standing != nullptr && side.standing->thread != nullptr &&
         !side.standing->thread->frames.empty();
}

const model::CollectiveCall* recorded(const Examination& examination, const Divergence& divergence,
                                      model::Rank rank) {
  return examination.history.at(divergence.group, rank, divergence.sequence);
}

/// Of ranks that called different operations, without those that called none.
model::RankSet all_but_first(const Divergence& divergence) {
  const bool others_called = divergence.about == graph::Disagreement::kOperation &&
                             divergence.calls.size() > 1 && divergence.calls[1].call;
  model::RankSet ranks;
  for (std::size_t i = 1; i < divergence.calls.size(); ++i) {
    if (divergence.calls[i].call || !others_called) {
      ranks = ranks.united(divergence.calls[i].ranks);
    }
  }
  return ranks;
}

// The ranks of one side of a divergence; a side without a call is at its current line.
Side side_at(const Examination& examination, const Divergence& divergence,
             const graph::DivergentCall& call) {
  const model::CollectiveCall* record =
      call.call ? recorded(examination, divergence, call.ranks.front()) : nullptr;
  return record != nullptr ? side_of_call(examination, call.ranks, record)
                           : side_of_standing(examination, call.ranks);
}

std::optional<Parting> parting_of_calls(const Examination& examination,
                                        const Divergence& divergence) {
  if (divergence.calls.size() < 2) {
    return std::nullopt;
  }
  Parting parting;
  parting.sequence = divergence.sequence;
  parting.about = divergence.about;
  parting.recorded = true;
  parting.rest = side_at(examination, divergence, divergence.calls[0]);
  parting.odd = side_at(examination, divergence, divergence.calls[1]);
  parting.odd.ranks = all_but_first(divergence);
  parting.tie = divergence.calls[1].ranks.size() == divergence.calls[0].ranks.size();
  if (parting.tie && divergence.calls.size() == 2 &&
      divergence.about == graph::Disagreement::kOperation) {
    const bool first = breaks_its_habit(examination, parting.rest);
    const bool second = breaks_its_habit(examination, parting.odd);
    if (first && !second) {
      std::swap(parting.odd, parting.rest);
    }
    parting.tie = first == second;
  }
  return parting;
}

std::optional<Parting> parting_of_missing(const Examination& examination,
                                          const Divergence& divergence) {
  model::RankSet present;
  model::RankSet missing;
  const graph::DivergentCall* called = nullptr;
  for (const graph::DivergentCall& side : divergence.calls) {
    (side.call ? present : missing) = (side.call ? present : missing).united(side.ranks);
    called = side.call && called == nullptr ? &side : called;
  }
  if (called == nullptr || missing.empty()) {
    return std::nullopt;
  }
  Parting parting;
  parting.sequence = divergence.sequence;
  parting.recorded = true;
  parting.rest = side_at(examination, divergence, *called);
  parting.rest.ranks = present;
  parting.odd = side_of_standing(examination, missing);
  parting.tie = present.size() == missing.size();
  return parting;
}

// A call that was matched by order only: the paths at the first difference count.
void walk_back(const Examination& examination, const GroupView& view, Parting& parting) {
  if (!view.first_site_divergence || view.first_site_divergence->calls.size() < 2) {
    return;
  }
  const Divergence& divergence = *view.first_site_divergence;
  const model::RankSet& rest = divergence.calls[0].ranks;
  const model::RankSet odd = all_but_first(divergence);
  const graph::Shift shift = graph::shift_between(examination.history, divergence.group,
                                                  divergence.sequence, odd.front(), rest.front());
  if (shift != graph::Shift::kExtra && shift != graph::Shift::kSkipped) {
    return;
  }
  parting.shifted = true;
  parting.odd_skipped = shift == graph::Shift::kSkipped;
  parting.sequence = divergence.sequence;
  parting.tie = odd.size() == rest.size();
  parting.rest = side_at(examination, divergence, divergence.calls[0]);
  parting.odd = side_at(examination, divergence, divergence.calls[1]);
  parting.odd.ranks = odd;
  // In a tie, the side with an extra call is the odd one unless the source shows otherwise.
  if (parting.tie && parting.odd_skipped) {
    parting.turn();
    parting.odd_skipped = false;
  }
}

std::optional<Parting> parting_from_records(const Examination& examination, const GroupView& view) {
  const Divergence* end = first_difference(examination, view);
  auto parting = end == nullptr                         ? std::nullopt
                 : end->about == Disagreement::kMissing ? parting_of_missing(examination, *end)
                                                        : parting_of_calls(examination, *end);
  if (!parting) {
    return std::nullopt;
  }
  parting->standing = has_stack(parting->odd) || has_stack(parting->rest);
  walk_back(examination, view, *parting);
  return parting;
}

/// It waits for its device at the line at which another rank is in the call: it has not reached the
/// call yet, but will.
bool is_before_the_call(const Examination& examination, const Standing& standing,
                        const std::string& group) {
  return standing.activity == Activity::kGpu && !standing.moved && !standing.on_cpu &&
         std::any_of(examination.standings.begin(), examination.standings.end(),
                     [&](const Standing& other) {
                       return stands_in_group(other, group) && !other.launched &&
                              !other.callers.empty() && other.callers == standing.callers;
                     });
}

// From stacks only: the ranks that are in one call of the group, and those that are not.
std::optional<Parting> parting_from_stacks(const Examination& examination, const GroupView& view) {
  std::map<model::Rank, std::string> said;
  model::RankSet elsewhere;
  model::RankSet absent;
  for (const model::Rank rank : members(examination, view)) {
    const Standing* standing = examination.standing(rank);
    if (standing == nullptr || standing->activity == Activity::kUnobserved ||
        is_before_the_call(examination, *standing, view.group.id)) {
      continue;
    }
    if (stands_in_group(*standing, view.group.id)) {
      said[rank] = standing->call->operation;
    } else {
      (standing->activity == Activity::kAbsent ? absent : elsewhere).insert(rank);
    }
  }
  if (said.empty()) {
    return std::nullopt;
  }
  const std::vector<Camp> operations = camps(said);
  if (elsewhere.empty() && operations.size() == 1) {
    elsewhere = absent;  // ranks that are not listed matter if the others agree
  }
  Parting parting;
  parting.standing = true;
  if (!elsewhere.empty()) {
    parting.rest = side_of_standing(examination, operations.front().ranks);
    parting.odd = side_of_standing(examination, elsewhere);
    parting.tie = parting.rest.ranks.size() == elsewhere.size();
    return parting;
  }
  if (operations.size() > 1 &&
      std::any_of(operations.begin(), operations.end(), [&](const Camp& camp) {
        const model::Rank first = operations[0].ranks.front();
        return camp.key.empty() || are_numbered_apart(examination, first, camp.ranks.front()) ||
               on_two_backends(examination, first, camp.ranks.front());
      })) {
    return std::nullopt;  // unknown never differs; native frames do not always show the operation
  }
  const std::vector<Camp> places =
      operations.size() == 1 ? camps_by_place(examination, operations.front().ranks) : operations;
  if (places.size() < 2) {
    return std::nullopt;
  }
  parting.about = operations.size() > 1 ? Disagreement::kOperation : Disagreement::kCallSite;
  parting.rest = side_of_standing(examination, places[0].ranks);
  parting.odd = side_of_standing(examination, places[1].ranks);
  for (std::size_t i = 2; i < places.size(); ++i) {
    parting.odd.ranks = parting.odd.ranks.united(places[i].ranks);
  }
  parting.tie = places[1].ranks.size() == places[0].ranks.size();
  return parting;
}

/// The call differs from that of the divergence: it is in another group, or before it in this one.
bool is_another(const graph::BlockedCall& call, const Parting& parting) {
  return call.group != parting.group ||
         (parting.sequence && call.sequence && *call.sequence < *parting.sequence);
}

// Kernels are launched ahead: a rank known from records may have many open calls and waits only in
// the oldest.
model::RankSet who_wait_here(const Examination& examination, const Parting& parting) {
  std::vector<model::Rank> ranks;
  for (const model::Rank rank : parting.rest.ranks) {
    const Standing* standing = examination.standing(rank);
    const bool elsewhere = standing != nullptr && standing->process == nullptr && standing->call &&
                           is_another(*standing->call, parting);
    if (!elsewhere) {
      ranks.push_back(rank);
    }
  }
  return model::RankSet(std::move(ranks));
}

// No rank waits in this call yet: those that have it are blocked before it.
bool is_only_queued(const Examination& examination, const Parting& parting) {
  return parting.about == Disagreement::kMissing && parting.recorded &&
         who_wait_here(examination, parting).empty();
}

/// Group → its divergence.
using ByGroup = std::map<std::string, const Parting*, std::less<>>;

// The rank waits in another diverged group for a rank that does not wait for it in turn. `waiting`:
// the ranks that wait in this group.
bool is_held_elsewhere(const Examination& examination, const Parting& parting,
                       const model::RankSet& waiting, model::Rank rank, const ByGroup& all) {
  const Standing* standing = examination.standing(rank);
  if (standing == nullptr || !in_collective(*standing) || standing->call->group.empty() ||
      standing->call->group == parting.group) {
    return false;
  }
  const auto other = all.find(standing->call->group);
  // A group whose ranks have all launched the call does not diverge: one of them is blocked.
  if (other == all.end() && standing->process == nullptr) {
    return !has_one_known_member(examination, standing->call->group) &&
           !few_are_ahead(examination, standing->call->group);
  }
  return other != all.end() && !other->second->odd.ranks.contains(rank) &&
         other->second->odd.ranks.common(waiting).empty();
}

// Removes ranks that are only blocked in another group; nothing if all are.
std::optional<Parting> without_held(const Examination& examination, const Parting& parting,
                                    const ByGroup& all) {
  std::vector<model::Rank> left;
  const model::RankSet waiting = who_wait_here(examination, parting);
  for (const model::Rank rank : parting.odd.ranks) {
    if (!is_inside_the_call(examination.standing(rank), parting) &&
        !is_held_elsewhere(examination, parting, waiting, rank, all)) {
      left.push_back(rank);
    }
  }
  if (left.empty()) {
    return std::nullopt;
  }
  Parting result = parting;
  if (parting.about == Disagreement::kMissing && left.size() < parting.odd.ranks.size()) {
    result.odd = side_of_standing(examination, model::RankSet(std::move(left)));
    result.tie = result.odd.ranks.size() == result.rest.ranks.size();
  }
  return result;
}

}  // namespace

Activity Side::activity() const {
  return standing == nullptr ? Activity::kUnobserved : standing->activity;
}

const model::CallSite& Side::site() const {
  static const model::CallSite kUnknown;
  return path.empty() ? kUnknown : path.front();
}

void Parting::turn() {
  std::swap(odd, rest);
}

std::vector<Parting> partings(const Examination& examination) {
  const model::RankSet unseen = unobserved_ranks(examination);
  // Ranks that use one name for two groups do not diverge in it: new-group-subset reports it.
  const auto shared = shared_name(examination);
  std::vector<Parting> all;
  for (const GroupView& view : examination.groups) {
    if ((shared && (view.group.id == shared->one->id || view.group.id == shared->other->id)) ||
        few_are_ahead(examination, view.group.id)) {
      continue;
    }
    auto parting = parting_from_records(examination, view);
    if (!parting) {
      parting = parting_from_stacks(examination, view);
      if (parting) {
        settle_rooted(examination, *parting);
      }
    }
    if (!parting || parting->odd.ranks.empty() || parting->rest.ranks.empty()) {
      continue;
    }
    parting->group = view.group.id;
    parting->unobserved = members(examination, view).common(unseen);
    all.push_back(std::move(*parting));
  }
  if (auto alone = all.empty() ? lone_waits(examination) : std::nullopt) {
    return {*std::move(alone)};
  }
  const auto queued = std::stable_partition(
      all.begin(), all.end(), [&](const auto& one) { return !is_only_queued(examination, one); });
  if (queued != all.begin()) {
    all.erase(queued, all.end());
  }
  settle_splits(examination, all);
  ByGroup by_group;
  for (const Parting& parting : all) {
    by_group.emplace(parting.group, &parting);
  }
  std::vector<Parting> result;
  for (const Parting& parting : all) {
    if (auto cause = without_held(examination, parting, by_group)) {
      result.push_back(std::move(*cause));
    }
  }
  // Each group is blocked by another one: the waits form a cycle, and all of them are the cause.
  return result.empty() && !examination.waits.cycles().empty() ? all : result;
}

}  // namespace ddpdoctor::detectors
