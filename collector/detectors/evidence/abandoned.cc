// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/abandoned.h"

#include <algorithm>
#include <set>

namespace ddpdoctor::detectors {
namespace {

bool is_shared(const BlockedThread& one) {
  return one.blockage == Blockage::kObject && one.object != nullptr &&
         one.object->text("object_kind") != "process" &&
         one.object->text("object_kind") != "file-lock";
}

/// The thread waits for an object that no other process holds.
bool is_left_alone(const BlockedThreads& blocked, std::size_t at) {
  const auto& enders = blocked.nodes[at].enders;
  return is_shared(blocked.threads[at]) &&
         std::all_of(enders.begin(), enders.end(), [&](std::size_t other) {
           return blocked.threads[other].process == blocked.threads[at].process;
         });
}

/// The thread itself and the threads of its process that it waits for, directly or indirectly.
std::set<std::size_t> waited_for_within(const BlockedThreads& blocked, std::size_t start) {
  std::set<std::size_t> seen = {start};
  std::vector<std::size_t> todo = {start};
  while (!todo.empty()) {
    const std::size_t at = todo.back();
    todo.pop_back();
    for (const std::size_t next : blocked.nodes[at].enders) {
      const bool own = blocked.threads[next].process == blocked.threads[start].process;
      if (own && seen.insert(next).second) {
        todo.push_back(next);
      }
    }
  }
  return seen;
}

}  // namespace

Hope hope_of(const BlockedThreads& blocked, const model::Thread& thread) {
  const auto found = std::find_if(blocked.threads.begin(), blocked.threads.end(),
                                  [&thread](const auto& one) { return one.thread == &thread; });
  if (found == blocked.threads.end() || found->blockage == Blockage::kRanks) {
    return Hope::kGoesOn;
  }
  const auto at = static_cast<std::size_t>(found - blocked.threads.begin());
  if (!graph::stuck_for_ever(blocked.nodes)[at]) {
    return Hope::kGoesOn;
  }
  const auto within = waited_for_within(blocked, at);
  if (std::any_of(within.begin(), within.end(),
                  [&](std::size_t one) { return is_left_alone(blocked, one); })) {
    return Hope::kAbandoned;
  }
  return std::any_of(within.begin(), within.end(),
                     [&](std::size_t one) { return is_shared(blocked.threads[one]); })
             ? Hope::kStuck
             : Hope::kGoesOn;
}

}  // namespace ddpdoctor::detectors
