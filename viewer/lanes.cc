// SPDX-License-Identifier: Apache-2.0
#include "viewer/lanes.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "viewer/clock.h"

namespace ddpdoctor::viewer {

namespace {

using model::CollectiveCall;
using model::Rank;

constexpr std::size_t kMostGroups = 8;
constexpr std::size_t kMostLanes = 32;
constexpr std::size_t kRanksWithOwnLane = 16;
constexpr std::int64_t kCallsBefore = 30;
constexpr std::int64_t kCallsAfter = 9;

/// The range of sequence numbers that are drawn, both included.
struct Window {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

using CallsOfRank = std::map<Rank, std::vector<const CollectiveCall*>>;

/// The collectives of one group by rank, in order.
CallsOfRank calls_of(const model::JobModel& job, const std::string& group) {
  CallsOfRank out;
  for (const CollectiveCall& call : job.collectives) {
    if (call.group == group && !call.point_to_point) {
      out[call.rank].push_back(&call);
    }
  }
  for (auto& [rank, calls] : out) {
    std::stable_sort(calls.begin(), calls.end(),
                     [](const auto* a, const auto* b) { return a->sequence < b->sequence; });
  }
  return out;
}

Window window_of(const CallsOfRank& calls, std::optional<std::int64_t> diverges) {
  std::int64_t newest = 0;
  for (const auto& [rank, own] : calls) {
    newest = std::max(newest, own.back()->sequence);
  }
  const std::int64_t middle = diverges.value_or(newest);
  return {.first = middle - kCallsBefore, .last = middle + kCallsAfter};
}

/// Ranks with equal marks made the same calls.
using Mark = std::tuple<std::int64_t, std::string, bool, model::CallSite>;

std::map<std::vector<Mark>, std::vector<Rank>> alike(const CallsOfRank& calls,
                                                     const Window& window) {
  std::map<std::vector<Mark>, std::vector<Rank>> out;
  for (const auto& [rank, own] : calls) {
    std::vector<Mark> marks;
    for (const CollectiveCall* call : own) {
      if (call->sequence >= window.first && call->sequence <= window.last) {
        marks.emplace_back(call->sequence, call->operation, model::is_over(call->state),
                           call->call_site);
      }
    }
    out[std::move(marks)].push_back(rank);
  }
  return out;
}

void widen(LaneCall& drawn, const CollectiveCall& call) {
  if (call.time) {
    drawn.begin = std::min(drawn.begin.value_or(*call.time), *call.time);
  }
  if (call.end_time) {
    drawn.end = std::max(drawn.end.value_or(*call.end_time), *call.end_time);
  }
}

Lane lane_of(const std::vector<Rank>& ranks, const CallsOfRank& calls, const Window& window) {
  Lane lane{.ranks = model::RankSet(ranks), .calls = {}};
  for (const Rank rank : ranks) {
    std::size_t index = 0;
    for (const CollectiveCall* call : calls.at(rank)) {
      if (call->sequence < window.first || call->sequence > window.last) {
        continue;
      }
      if (index == lane.calls.size()) {
        lane.calls.push_back({.sequence = call->sequence,
                              .operation = call->operation,
                              .over = model::is_over(call->state),
                              .begin = {},
                              .end = {},
                              .site = call->call_site});
      }
      widen(lane.calls[index++], *call);
    }
  }
  return lane;
}

/// Members without a recorded call: those that certainly made none, and those without evidence.
void add_silent_members(const graph::GroupView& view, const CallsOfRank& calls, GroupLanes& out) {
  std::vector<Rank> idle;
  std::vector<Rank> unknown;
  for (const Rank rank : view.group.ranks) {
    if (!calls.contains(rank)) {
      (view.progress_of(rank) != nullptr ? idle : unknown).push_back(rank);
    }
  }
  for (const bool observed : {true, false}) {
    const std::vector<Rank>& ranks = observed ? idle : unknown;
    if (!ranks.empty()) {
      out.lanes.push_back({.ranks = model::RankSet(ranks), .calls = {}, .observed = observed});
    }
  }
}

GroupLanes lanes_of(const model::JobModel& job, const graph::GroupView& view) {
  const auto& first = view.first_divergence;
  const auto diverges = first ? std::optional(first->sequence) : std::optional<std::int64_t>();
  GroupLanes out{.group = view.group.id, .diverges = diverges, .lanes = {}, .now = {}};
  const CallsOfRank calls = calls_of(job, view.group.id);
  if (calls.empty()) {
    return out;
  }
  const Window window = window_of(calls, diverges);
  std::vector<std::vector<Rank>> sets;
  if (calls.size() <= kRanksWithOwnLane) {
    for (const auto& [rank, own] : calls) {
      sets.push_back({rank});
    }
  } else {
    for (auto& [marks, ranks] : alike(calls, window)) {
      sets.push_back(ranks);
    }
    std::stable_sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.size(), a) < std::tuple(b.size(), b);
    });
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    // The others are compared with the last set, which is the largest.
    if (i + 1 < kMostLanes || i + 1 == sets.size()) {
      out.lanes.push_back(lane_of(sets[i], calls, window));
    } else {
      out.left_out += sets[i].size();
    }
  }
  add_silent_members(view, calls, out);
  return out;
}

/// Times are relative to the oldest drawn call.
void rebase(std::vector<GroupLanes>& groups, double now) {
  std::optional<double> oldest;
  const auto each_call = [&groups](auto&& visit) {
    for (GroupLanes& group : groups) {
      for (Lane& lane : group.lanes) {
        std::for_each(lane.calls.begin(), lane.calls.end(), visit);
      }
    }
  };
  each_call([&oldest](const LaneCall& call) {
    if (call.begin) {
      oldest = std::min(oldest.value_or(*call.begin), *call.begin);
    }
  });
  each_call([&oldest](LaneCall& call) {
    if (oldest && call.begin) {
      *call.begin -= *oldest;
    }
    if (oldest && call.end) {
      *call.end -= *oldest;
    }
  });
  for (GroupLanes& group : groups) {
    if (oldest) {
      group.now = now - *oldest;
    }
  }
}

}  // namespace

std::vector<GroupLanes> group_lanes(const diagnosis::Diagnosis& diagnosis) {
  std::vector<const graph::GroupView*> views;
  for (const graph::GroupView& view : diagnosis.examination.groups) {
    views.push_back(&view);
  }
  std::stable_sort(views.begin(), views.end(), [](const auto* a, const auto* b) {
    return a->first_divergence.has_value() && !b->first_divergence.has_value();
  });
  std::vector<GroupLanes> out;
  for (const graph::GroupView* view : views) {
    if (out.size() == kMostGroups) {
      break;
    }
    GroupLanes lanes = lanes_of(diagnosis.job, *view);
    if (!lanes.lanes.empty()) {
      out.push_back(std::move(lanes));
    }
  }
  rebase(out, newest_moment(diagnosis.job));
  return out;
}

}  // namespace ddpdoctor::viewer
