// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/rank_marks.h"

#include <algorithm>
#include <utility>

#include "collector/monitor/spool.h"

namespace ddpdoctor::fleet {
namespace {

// A rank with more groups than this reports only the most recently used: messages stay small.
constexpr std::size_t kMostGroupsOfARank = 64;

}  // namespace

void RankMarks::find_rings() {
  for (const std::string& name : monitor::rings_in(spool_)) {
    if (rings_.contains(name)) {
      continue;
    }
    if (auto tail = sources::RingTail::open(spool_ + "/" + name)) {
      rings_.emplace(name, Ring{.tail = std::move(*tail), .mark = {}, .groups = {}});
    }
  }
}

bool RankMarks::read(Ring& ring) {
  const sources::RingNews news = ring.tail.read();
  const RankMark before =
      std::exchange(ring.mark, {.rank = news.rank,
                                .pid = static_cast<std::uint32_t>(std::max(ring.tail.pid(), 0)),
                                .start_ticks = news.start_ticks,
                                .collectives = news.collectives,
                                .lost = news.lost,
                                .ended = news.ended,
                                .groups = {}});
  world_size_ = std::max(world_size_, news.world_size);
  killed_ += news.children_killed;
  for (const sources::CallSignature& call : news.calls) {
    if (!call.group.empty()) {
      Group& group = ring.groups[call.group];
      group.size = call.group_size;
      group.operation = call.operation;
      group.fingerprint.add(call);
    }
  }
  for (const sources::GroupProgress& progress : news.completed) {
    if (const auto found = ring.groups.find(progress.group); found != ring.groups.end()) {
      found->second.completed = std::max(found->second.completed, progress.completed);
    }
  }
  return !news.calls.empty() || !news.completed.empty() || before.rank != ring.mark.rank ||
         before.ended != ring.mark.ended || before.collectives != ring.mark.collectives;
}

bool RankMarks::read() {
  find_rings();
  bool changed = false;
  for (auto& [name, ring] : rings_) {
    changed = read(ring) || changed;
  }
  return changed;
}

std::vector<RankMark> RankMarks::ranks() const {
  std::map<int, const Ring*> newest;
  for (const auto& [name, ring] : rings_) {
    if (ring.mark.rank < 0 || ring.groups.empty()) {
      continue;  // a worker process of a rank, or a rank without a call
    }
    const Ring*& known = newest[ring.mark.rank];
    known = known == nullptr || known->mark.start_ticks < ring.mark.start_ticks ? &ring : known;
  }
  std::vector<RankMark> out;
  for (const auto& [rank, ring] : newest) {
    RankMark mark = ring->mark;
    for (const auto& [name, group] : ring->groups) {
      if (mark.groups.size() == kMostGroupsOfARank) {
        break;
      }
      mark.groups.push_back({.group = name,
                             .size = group.size,
                             .completed = group.completed,
                             .operation = group.operation,
                             .hashes = group.fingerprint.hashes()});
    }
    out.push_back(std::move(mark));
  }
  return out;
}

}  // namespace ddpdoctor::fleet
