// SPDX-License-Identifier: Apache-2.0
// Compares the recorded calls of a group, from the oldest common sequence number. No rank is the
// reference: at each sequence number the ranks are sorted into sides, the largest first.
#include "collector/graph/divergence.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <set>

#include "collector/graph/blocked_call.h"
#include "collector/graph/comparison.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

constexpr std::array<Disagreement, 6> kOfContent = {
    Disagreement::kOperation, Disagreement::kRoot,  Disagreement::kShape,
    Disagreement::kSplits,    Disagreement::kDtype, Disagreement::kReduceOp};

/// The data needed to compare one group.
struct Reading {
  const model::JobModel& job;
  const std::vector<Standing>& standings;
  const History& history;
  GroupView& view;

  [[nodiscard]] const Standing* standing(model::Rank rank) const {
    const auto found =
        std::lower_bound(standings.begin(), standings.end(), rank,
                         [](const Standing& one, model::Rank wanted) { return one.rank < wanted; });
    return found == standings.end() || found->rank != rank ? nullptr : &*found;
  }

  /// True if the rank's stack shows that it is in a collective of this group now.
  [[nodiscard]] bool stands_here(model::Rank rank) const {
    const Standing* one = standing(rank);
    return one != nullptr && one->call && one->call->group == view.group.id &&
           one->activity != Activity::kPointToPoint;
  }

  /// The rank has this call and is not known to be past it. A failed call counts: it waited for a
  /// rank that never called it.
  [[nodiscard]] bool waits_in(const model::CollectiveCall& call) const {
    const Standing* one = standing(call.rank);
    const bool has_stack = one != nullptr && one->thread != nullptr && !one->thread->frames.empty();
    const bool failed = call.state == model::CallState::kFailed && job.ended;
    return has_stack ? one->waits_for_ranks() && stands_here(call.rank)
                     : !model::is_over(call.state) || failed;
  }
};

RankProgress progress_from(const Reading& reading, model::Rank rank, const Calls& calls) {
  RankProgress result{.rank = rank, .enqueued = 0, .completed = 0, .first_known = 1};
  if (calls.empty()) {
    return result;
  }
  result.enqueued = calls.back()->sequence;
  result.first_known = calls.front()->sequence;
  result.completed = result.enqueued;
  if (reading.stands_here(rank)) {
    result.completed = result.enqueued - 1;
  }
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    const bool open = (*call)->state == model::CallState::kEnqueued ||
                      (*call)->state == model::CallState::kStarted;
    if (!open) {
      break;
    }
    result.completed = std::min(result.completed, (*call)->sequence - 1);
  }
  return result;
}

void read_progress(const Reading& reading) {
  const std::map<model::Rank, Calls>& ranks = reading.history.ranks(reading.view.group.id);
  std::set<model::Rank> members(reading.view.group.ranks.begin(), reading.view.group.ranks.end());
  for (const auto& [rank, calls] : ranks) {
    members.insert(rank);
  }
  for (const model::Rank rank : members) {
    const auto found = ranks.find(rank);
    if (found != ranks.end()) {
      reading.view.progress.push_back(progress_from(reading, rank, found->second));
    } else if (!ranks.empty() && reading.history.was_read(rank)) {
      // Its recorder has no call in this group: it made none.
      reading.view.progress.push_back(
          {.rank = rank, .enqueued = 0, .completed = 0, .first_known = 1});
    }
  }
}

// Ring buffers wrap: all ranks can be compared only from the largest first record on. A rank that
// stopped before it is behind, not unknown.
std::int64_t first_comparable(const GroupView& view) {
  std::int64_t first = 1;
  for (const RankProgress& progress : view.progress) {
    first = std::max(first, progress.first_known);
  }
  return first;
}

model::RankSet behind(const GroupView& view, std::int64_t sequence) {
  std::vector<model::Rank> ranks;
  for (const RankProgress& progress : view.progress) {
    if (progress.enqueued < sequence) {
      ranks.push_back(progress.rank);
    }
  }
  return model::RankSet(std::move(ranks));
}

void note(GroupView& view, Divergence divergence) {
  if (view.disagreement(divergence.about) == nullptr) {
    view.disagreements.push_back(std::move(divergence));
  }
}

void note_splits(const Reading& reading, const Walk& walk) {
  std::vector<DivergentCall> sides = sort_by_splits(walk.present(), reading.view.group.ranks);
  if (sides.size() > 1) {
    note(reading.view, {.group = reading.view.group.id,
                        .sequence = walk.sequence(),
                        .about = Disagreement::kSplits,
                        .calls = std::move(sides)});
  }
}

void note_content(const Reading& reading, const Walk& walk) {
  if (!any_differs(walk.present(), Disagreement::kOperation)) {
    note_splits(reading, walk);
  }
  for (const Disagreement about : kOfContent) {
    if (!any_differs(walk.present(), about)) {
      continue;
    }
    Divergence divergence{.group = reading.view.group.id,
                          .sequence = walk.sequence(),
                          .about = about,
                          .calls = sort_into_sides(walk.present(), about)};
    const model::RankSet late = behind(reading.view, walk.sequence());
    if (about == Disagreement::kOperation && !late.empty()) {
      divergence.calls.push_back({.ranks = late, .call = std::nullopt});
    }
    note(reading.view, std::move(divergence));
    if (about == Disagreement::kOperation) {
      return;
    }
  }
}

bool note_missing(const Reading& reading, const Walk& walk) {
  const model::RankSet late = behind(reading.view, walk.sequence());
  const bool somebody_waits = std::any_of(
      walk.present().begin(), walk.present().end(),
      [&reading](const model::CollectiveCall* call) { return reading.waits_in(*call); });
  if (late.empty() || !somebody_waits) {
    return false;
  }
  Divergence divergence{.group = reading.view.group.id,
                        .sequence = walk.sequence(),
                        .about = Disagreement::kMissing,
                        .calls = sort_into_sides(walk.present(), Disagreement::kOperation)};
  divergence.calls.push_back({.ranks = late, .call = std::nullopt});
  note(reading.view, std::move(divergence));
  return true;
}

// A different operation, or one of another size from another line.
bool are_different_calls(const Calls& calls) {
  return any_differs(calls, Disagreement::kOperation) ||
         (any_differs(calls, Disagreement::kShape) && any_differs(calls, Disagreement::kCallSite));
}

std::int64_t oldest_known(const GroupView& view) {
  std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
  for (const RankProgress& progress : view.progress) {
    oldest = std::min(oldest, progress.first_known);
  }
  return oldest;
}

/// True if two ranks still wait in one call of the group and gave it different operations: they
/// disagree whatever a third rank, whose record of it is lost, had called.
bool wait_in_different_calls(const Reading& reading, const Calls& calls) {
  Calls waiting;
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(waiting),
               [&reading](const auto* call) { return reading.waits_in(*call); });
  return any_differs(waiting, Disagreement::kOperation);
}

// After operations differ or a rank is missing, later numbers refer to different calls on different
// ranks.
void read_disagreements(const Reading& reading) {
  const std::int64_t first = first_comparable(reading.view);
  Walk walk(reading.history.ranks(reading.view.group.id), oldest_known(reading.view));
  while (walk.advance()) {
    if (walk.sequence() < first && !wait_in_different_calls(reading, walk.present())) {
      continue;
    }
    note_content(reading, walk);
    if (are_different_calls(walk.present()) || note_missing(reading, walk)) {
      break;
    }
  }
  if (!reading.view.disagreements.empty()) {
    reading.view.first_divergence = reading.view.disagreements.front();
  }
}

// Two branches with one call each are not a divergence; an extra or missing call shifts all later
// ones.
bool shifts(const Reading& reading, const Divergence& divergence) {
  for (std::size_t i = 1; i < divergence.calls.size(); ++i) {
    const Shift shift =
        shift_between(reading.history, divergence.group, divergence.sequence,
                      divergence.calls[i].ranks.front(), divergence.calls[0].ranks.front());
    if (shift == Shift::kExtra || shift == Shift::kSkipped) {
      return true;
    }
  }
  return false;
}

/// For calls from different lines; else for calls that reached the same line through different ones
/// (for example a layer that reduces, in a forward that only one rank calls).
std::optional<Divergence> first_shift(const Reading& reading, std::int64_t end, bool by_callers) {
  Walk walk(reading.history.ranks(reading.view.group.id), first_comparable(reading.view));
  while (walk.advance() && walk.sequence() < end) {
    const Calls& calls = walk.present();
    const bool alike = std::all_of(calls.begin(), calls.end(), [&](const auto* call) {
      return by_callers ? same_callers(*calls.front(), *call)
                        : !differ_in(Disagreement::kCallSite, *calls.front(), *call);
    });
    if (alike) {
      continue;
    }
    Divergence divergence{.group = reading.view.group.id,
                          .sequence = walk.sequence(),
                          .about = Disagreement::kCallSite,
                          .calls = by_callers ? sort_by_callers(calls)
                                              : sort_into_sides(calls, Disagreement::kCallSite)};
    if (shifts(reading, divergence)) {
      return divergence;
    }
  }
  return std::nullopt;
}

void read_sites(const Reading& reading) {
  const Divergence* end = reading.view.end_of_agreement();
  if (end == nullptr) {
    return;
  }
  auto by_line = first_shift(reading, end->sequence, false);
  auto by_callers = first_shift(reading, by_line ? by_line->sequence : end->sequence, true);
  reading.view.first_site_divergence = by_callers ? std::move(by_callers) : std::move(by_line);
}

std::vector<model::ProcessGroup> groups_with_evidence(const model::JobModel& job,
                                                      const std::vector<Standing>& standings,
                                                      const History& history) {
  std::set<std::string> wanted;
  for (const std::string& group : history.groups()) {
    wanted.insert(group);
  }
  for (const Standing& standing : standings) {
    if (standing.call && !standing.call->group.empty()) {
      wanted.insert(standing.call->group);
    }
  }
  std::map<std::string_view, const model::ProcessGroup*> declared;
  for (const model::ProcessGroup& group : job.groups) {
    declared.emplace(group.id, &group);
  }
  std::vector<model::ProcessGroup> result;
  const std::string world = world_group(job);
  for (const std::string& id : wanted) {
    const auto known = declared.find(id);
    model::ProcessGroup group =
        known != declared.end()
            ? *known->second
            : model::ProcessGroup{.id = id, .name = {}, .backend = {}, .ranks = {}};
    result.insert(id == world ? result.begin() : result.end(), std::move(group));
  }
  return result;
}

}  // namespace

std::string_view disagreement_name(Disagreement about) {
  switch (about) {
    case Disagreement::kOperation:
      return "operation";
    case Disagreement::kShape:
      return "shape";
    case Disagreement::kDtype:
      return "dtype";
    case Disagreement::kReduceOp:
      return "reduce_op";
    case Disagreement::kRoot:
      return "root";
    case Disagreement::kSplits:
      return "splits";
    case Disagreement::kMissing:
      return "missing";
    case Disagreement::kCallSite:
      return "call_site";
  }
  return "missing";
}

const RankProgress* GroupView::progress_of(model::Rank rank) const {
  const auto found = std::lower_bound(
      progress.begin(), progress.end(), rank,
      [](const RankProgress& one, model::Rank wanted) { return one.rank < wanted; });
  return found == progress.end() || found->rank != rank ? nullptr : &*found;
}

const Divergence* GroupView::disagreement(Disagreement about) const {
  const auto found = std::find_if(disagreements.begin(), disagreements.end(),
                                  [about](const Divergence& one) { return one.about == about; });
  return found == disagreements.end() ? nullptr : &*found;
}

namespace {

bool ends_there(const GroupView& view, const Divergence& one) {
  return std::any_of(view.progress.begin(), view.progress.end(),
                     [&one](const RankProgress& rank) { return rank.enqueued == one.sequence; });
}

// Calls of different size from two lines are two calls of the program; so are calls of different
// type from two functions if some rank did not get further. Two casts of one value complete.
bool are_two_calls(const GroupView& view, const Divergence& one) {
  if (one.calls.size() < 2 || !one.calls[0].call || !one.calls[1].call) {
    return false;
  }
  const model::CallSite& a = one.calls[0].call->call_site;
  const model::CallSite& b = one.calls[1].call->call_site;
  return a.known() && b.known() &&
         ((one.about == Disagreement::kShape && !same_line(a, b)) ||
          (one.about == Disagreement::kDtype && (a.file != b.file || a.function != b.function) &&
           ends_there(view, one)));
}

}  // namespace

const Divergence* GroupView::end_of_agreement() const {
  for (const Divergence& one : disagreements) {
    if (one.about == Disagreement::kOperation || one.about == Disagreement::kMissing ||
        are_two_calls(*this, one)) {
      return &one;
    }
  }
  return nullptr;
}

std::vector<GroupView> group_views(const model::JobModel& job,
                                   const std::vector<Standing>& standings) {
  return group_views(job, standings, History(job));
}

std::vector<GroupView> group_views(const model::JobModel& job,
                                   const std::vector<Standing>& standings, const History& history) {
  std::vector<GroupView> result;
  for (model::ProcessGroup& group : groups_with_evidence(job, standings, history)) {
    GroupView view;
    view.group = std::move(group);
    const Reading reading{.job = job, .standings = standings, .history = history, .view = view};
    read_progress(reading);
    read_disagreements(reading);
    read_sites(reading);
    result.push_back(std::move(view));
  }
  return result;
}

}  // namespace ddpdoctor::graph
