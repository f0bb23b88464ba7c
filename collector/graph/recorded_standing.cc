// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/recorded_standing.h"

#include <algorithm>

#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

using model::CallState;
using model::CollectiveCall;

bool is_older(const CollectiveCall& a, const CollectiveCall* b) {
  return b == nullptr || (a.time && b->time && *a.time < *b->time);
}

bool newer(const CollectiveCall& a, const CollectiveCall* b) {
  return b == nullptr || (a.time && b->time && *a.time > *b->time);
}

/// The two relevant calls of a rank: the oldest that has not ended, and the newest.
struct Ends {
  const CollectiveCall* open = nullptr;
  const CollectiveCall* newest = nullptr;
};

/// Open calls are consecutive at the end of a lane.
void read_lane(const Calls& calls, Ends& ends) {
  for (auto call = calls.rbegin(); call != calls.rend() && !model::is_over((*call)->state);
       ++call) {
    if (is_older(**call, ends.open) ||
        (ends.open != nullptr && ends.open->group == (*call)->group &&
         (*call)->sequence < ends.open->sequence)) {
      ends.open = *call;
    }
  }
  if (!calls.empty() && newer(*calls.back(), ends.newest)) {
    ends.newest = calls.back();
  }
}

Ends ends_of(const History& history, model::Rank rank) {
  Ends ends;
  for (const Calls* calls : history.lanes(rank)) {
    read_lane(*calls, ends);
  }
  for (const CollectiveCall* call : history.point_to_point(rank)) {
    if (!model::is_over(call->state) && is_older(*call, ends.open)) {
      ends.open = call;
    }
    if (newer(*call, ends.newest)) {
      ends.newest = call;
    }
  }
  return ends;
}

/// A process is a rank with an unknown number: it may be any rank without a process.
bool somebody_is_nameless(const model::JobModel& job) {
  const auto& processes = model::latest(job)->processes;
  return std::any_of(processes.begin(), processes.end(), [](const model::Process& process) {
    const bool alive = process.state != 'Z' && process.state != 'X' && !process.exit;
    return process.role == model::Role::kRank && !process.rank && alive;
  });
}

}  // namespace

std::optional<Activity> ended_as(const model::JobModel& job, model::Rank rank) {
  for (const model::Fact* fact : model::facts(job, "exit")) {
    if (fact->rank == rank && fact->text("role").value_or("rank") == "rank") {
      return fact->number("signal") ? Activity::kDead : Activity::kExited;
    }
  }
  return std::nullopt;
}

Standing recorded_standing(const model::JobModel& job, const History& history, model::Rank rank) {
  Standing result;
  result.rank = rank;
  const bool looked = model::latest(job) != nullptr && !model::ranks_seen(job).empty();
  const bool unknown = !looked || job.coverage.unobserved_ranks.contains(rank);
  result.activity =
      unknown || somebody_is_nameless(job) ? Activity::kUnobserved : Activity::kAbsent;
  const auto ended = looked ? ended_as(job, rank) : std::nullopt;
  // Stacks of other ranks say nothing of this one: its records do.
  if (ended || (looked && !(unknown && history.was_read(rank)))) {
    result.activity = ended.value_or(result.activity);
    return result;
  }
  const Ends ends = ends_of(history, rank);
  if (ends.open != nullptr) {
    const CollectiveCall& open = *ends.open;
    const bool pair = open.point_to_point || is_point_to_point(open.operation);
    result.activity = pair ? Activity::kPointToPoint : Activity::kCollective;
    result.call = BlockedCall{.operation = open.operation,
                              .group = open.group,
                              .sequence = pair ? std::nullopt : std::optional(open.sequence),
                              .root = open.root,
                              .peer = open.peer,
                              .reduce_op = open.reduce_op,
                              .shape = open.shape,
                              .dtype = open.dtype};
    result.user = open.call_site;
    result.callers = callers_of(open);
  } else if (history.was_read(rank)) {
    // The path from its newest call is unknown: that line does not lead to its current position.
    result.activity = Activity::kBetweenCalls;
    result.user = ends.newest == nullptr ? model::CallSite{} : ends.newest->call_site;
    if (ends.newest != nullptr && ends.newest->operation.empty()) {
      result.call = BlockedCall{};  // only that it was not the last one
    }
  }
  return result;
}

}  // namespace ddpdoctor::graph
