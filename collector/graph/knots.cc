// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/knots.h"

#include <algorithm>
#include <set>

namespace ddpdoctor::graph {
namespace {

bool can_go_on(const ChoiceNode& node, const std::vector<bool>& stuck) {
  const auto acts = [&stuck](std::size_t other) { return other < stuck.size() && !stuck[other]; };
  if (node.goes_on) {
    return true;
  }
  return node.needs_all
             ? !node.enders.empty() && std::all_of(node.enders.begin(), node.enders.end(), acts)
             : std::any_of(node.enders.begin(), node.enders.end(), acts);
}

/// Everything that `start` waits for, directly or indirectly, including itself.
std::set<std::size_t> reach(const std::vector<ChoiceNode>& nodes, const std::vector<bool>& stuck,
                            std::size_t start) {
  std::set<std::size_t> seen = {start};
  std::vector<std::size_t> todo = {start};
  while (!todo.empty()) {
    const std::size_t at = todo.back();
    todo.pop_back();
    for (const std::size_t next : nodes[at].enders) {
      if (next < nodes.size() && stuck[next] && seen.insert(next).second) {
        todo.push_back(next);
      }
    }
  }
  return seen;
}

}  // namespace

std::vector<bool> stuck_for_ever(const std::vector<ChoiceNode>& nodes) {
  std::vector<bool> stuck(nodes.size(), true);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (stuck[i] && can_go_on(nodes[i], stuck)) {
        stuck[i] = false;
        changed = true;
      }
    }
  }
  return stuck;
}

std::vector<std::vector<std::size_t>> knots(const std::vector<ChoiceNode>& nodes) {
  const std::vector<bool> stuck = stuck_for_ever(nodes);
  std::vector<std::vector<std::size_t>> found;
  std::set<std::size_t> placed;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!stuck[i] || placed.contains(i)) {
      continue;
    }
    // In a knot, each member reaches every member and nothing else.
    const std::set<std::size_t> all = reach(nodes, stuck, i);
    const bool closed = std::all_of(all.begin(), all.end(), [&](std::size_t other) {
      return reach(nodes, stuck, other).contains(i);
    });
    if (closed) {
      found.emplace_back(all.begin(), all.end());
      placed.insert(all.begin(), all.end());
    }
  }
  return found;
}

}  // namespace ddpdoctor::graph
