// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/knots.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "collector/graph/components.h"

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
  std::vector<std::vector<std::size_t>> targets(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::copy_if(
        nodes[i].enders.begin(), nodes[i].enders.end(), std::back_inserter(targets[i]),
        [&](std::size_t other) { return stuck[i] && other < stuck.size() && stuck[other]; });
  }
  const std::vector<std::size_t> component = strong_components(targets);
  std::map<std::size_t, std::vector<std::size_t>> members;  // stuck nodes of each component
  std::set<std::size_t> open;                               // components that wait for another one
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (stuck[i]) {
      members[component[i]].push_back(i);
    }
    for (const std::size_t target : targets[i]) {
      if (component[target] != component[i]) {
        open.insert(component[i]);
      }
    }
  }
  std::vector<std::vector<std::size_t>> found;
  for (auto& [name, all] : members) {
    if (!open.contains(name)) {
      found.push_back(std::move(all));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace ddpdoctor::graph
