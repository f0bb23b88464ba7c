// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/live.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "wire/events.h"

namespace ddpdoctor::fleet {
namespace {

std::string operation_of(const GroupMark& mark) {
  const char* const name = wire::operation_name(static_cast<wire::Operation>(mark.operation));
  return name != nullptr ? name : "a call";
}

/// The newest call that the rank began and has not completed.
std::string doing(const RankMark& rank) {
  for (const GroupMark& group : rank.groups) {
    if (group.completed < group.hashes.sequence) {
      return fmt::format("{} #{} of group {}", operation_of(group), group.hashes.sequence,
                         base::printable(group.group));
    }
  }
  return rank.ended ? "ended" : "computing";
}

void add_group(const GroupMark& mark, int rank, std::map<std::string, graph::LiveGroup>& groups) {
  graph::LiveGroup& group = groups[mark.group];
  group.name = base::printable(mark.group);
  const auto sequence = static_cast<std::int64_t>(mark.hashes.sequence);
  if (sequence > group.sequence) {
    group.missing = group.missing.united(group.joined);
    group.joined = {};
    group.sequence = sequence;
    group.operation = operation_of(mark);
  }
  if (sequence == group.sequence) {
    group.joined.insert(rank);
  } else {
    group.missing.insert(rank);
  }
}

}  // namespace

graph::LiveView live_view(const JobState& state, const std::string& job, double now) {
  graph::LiveView view;
  view.title = fmt::format("job {} on {} node{}", job, state.nodes().size(),
                           state.nodes().size() == 1 ? "" : "s");
  if (state.world_size() > 0) {
    view.world_size = state.world_size();
  }
  std::map<std::string, graph::LiveGroup> groups;
  for (const auto& [name, node] : state.nodes()) {
    const std::string host = base::printable(node.marks.host);
    if (state.is_silent(node, now)) {
      view.notes.push_back(
          fmt::format("{}: no word for {}", said(node), base::duration(now - node.heard)));
    }
    for (const RankMark& rank : node.marks.ranks) {
      view.ranks.push_back({.rank = rank.rank,
                            .pid = static_cast<pid_t>(rank.pid),
                            .doing = doing(rank),
                            .place = host,
                            .lag = {}});
      for (const GroupMark& mark : rank.groups) {
        add_group(mark, rank.rank, groups);
      }
    }
  }
  std::sort(view.ranks.begin(), view.ranks.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  for (auto& [name, group] : groups) {
    view.groups.push_back(std::move(group));
  }
  view.calls = state.calls();
  view.still_for = state.still_for(now);
  view.ended = state.all_ended();
  return view;
}

}  // namespace ddpdoctor::fleet
