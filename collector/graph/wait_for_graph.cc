// SPDX-License-Identifier: Apache-2.0
// Queries on the graph: where its edges end, where they form a cycle.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "collector/graph/components.h"
#include "collector/graph/wait_for.h"

namespace ddpdoctor::graph {
namespace {

// Step limit of the cycle search: the number of simple cycles can be exponential, and a reader
// needs only the first ones.
constexpr std::size_t kMostSteps = 200'000;
constexpr std::size_t kMostCycles = 16;

using Cycles = std::vector<std::vector<std::string>>;
using Arrows = std::map<std::string, std::set<std::string>>;

/// The edges that can be part of a cycle: both ends are in one strongly connected component.
Arrows circular_arrows(const std::vector<std::string>& names,
                       const std::vector<std::vector<std::size_t>>& targets) {
  const std::vector<std::size_t> component = strong_components(targets);
  Arrows result;
  for (std::size_t from = 0; from < targets.size(); ++from) {
    for (const std::size_t to : targets[from]) {
      if (component[from] == component[to]) {
        result[names[from]].insert(names[to]);
      }
    }
  }
  return result;
}

/// Finds simple cycles whose first node is the smallest, so that each is found once.
class CycleSearch {
 public:
  explicit CycleSearch(const Arrows& arrows) : arrows_(arrows) {}

  Cycles all() {
    for (const auto& [node, targets] : arrows_) {
      path_ = {node};
      on_path_ = {node};
      follow(node, targets);
    }
    return std::move(found_);
  }

 private:
  // NOLINTNEXTLINE(misc-no-recursion): as deep as the longest path, bounded by the number of nodes
  // also limited by kMostSteps
  void follow(const std::string& start, const std::set<std::string>& targets) {
    for (const std::string& target : targets) {
      if (found_.size() >= kMostCycles || ++steps_ > kMostSteps) {
        return;
      }
      if (target == start) {
        found_.push_back(path_);
      } else if (target > start && path_.size() < kLongest && on_path_.insert(target).second) {
        path_.push_back(target);
        follow(start, arrows_.at(target));
        path_.pop_back();
        on_path_.erase(target);
      }
    }
  }

  static constexpr std::size_t kLongest = 64;
  const Arrows& arrows_;
  std::size_t steps_ = 0;
  std::vector<std::string> path_;
  std::set<std::string> on_path_;
  Cycles found_;
};

std::string spoken(const std::string& node) {
  const std::size_t colon = node.find(':');
  if (colon == std::string::npos) {
    return node;
  }
  const std::string kind = node.substr(0, colon);
  return (kind == "pid" ? "process" : kind) + " " + node.substr(colon + 1);
}

}  // namespace

std::size_t WaitForGraph::number(const std::string& node) {
  const auto [known, added] = numbers_.try_emplace(node, names_.size());
  if (added) {
    names_.push_back(node);
    targets_.emplace_back();
    leaving_.emplace_back();
  }
  return known->second;
}

void WaitForGraph::add(Edge edge) {
  const std::size_t from = number(edge.from);
  const std::size_t to = number(edge.to);
  std::vector<std::size_t>& targets = targets_[from];
  const auto place = std::lower_bound(targets.begin(), targets.end(), to);
  if (place == targets.end() || *place != to) {
    targets.insert(place, to);
  }
  leaving_[from].push_back(edges_.size());
  edges_.push_back(std::move(edge));
  memo_.clear();
}

void WaitForGraph::add(CollectiveWait wait) {
  collective_waits_.push_back(std::move(wait));
}

std::vector<std::string> WaitForGraph::nodes() const {
  std::vector<std::string> all = names_;
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<const Edge*> WaitForGraph::from(const std::string& node) const {
  std::vector<const Edge*> result;
  if (const auto known = numbers_.find(node); known != numbers_.end()) {
    for (const std::size_t edge : leaving_[known->second]) {
      result.push_back(&edges_[edge]);
    }
  }
  return result;
}

std::vector<std::string> WaitForGraph::sinks() const {
  std::vector<std::string> result;
  for (std::size_t node = 0; node < names_.size(); ++node) {
    if (targets_[node].empty()) {
      result.push_back(names_[node]);
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

const Cycles& WaitForGraph::cycles() const {
  return memo_.once<Cycles>([this] {
    const Arrows arrows = circular_arrows(names_, targets_);
    return CycleSearch(arrows).all();
  });
}

std::vector<std::string> WaitForGraph::ends_of_waiting(const std::string& node) const {
  const auto known = numbers_.find(node);
  if (known == numbers_.end()) {
    return {};
  }
  const std::size_t start = known->second;
  std::vector<bool> seen(names_.size(), false);
  seen[start] = true;
  std::vector<std::size_t> open = {start};
  std::vector<std::string> ends;
  while (!open.empty()) {
    const std::size_t current = open.back();
    open.pop_back();
    if (targets_[current].empty() && current != start) {
      ends.push_back(names_[current]);
    }
    for (const std::size_t target : targets_[current]) {
      if (!seen[target]) {
        seen[target] = true;
        open.push_back(target);
      }
    }
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

std::string cycle_sentence(const WaitForGraph& graph, const std::vector<std::string>& cycle) {
  std::string text;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::string& from = cycle[i];
    const std::string& to = cycle[(i + 1) % cycle.size()];
    std::string why;
    for (const Edge* edge : graph.from(from)) {
      if (edge->to == to) {
        why = edge->why;
        break;
      }
    }
    text += fmt::format("{}{} waits for {}{}", i == 0 ? "" : ", ", spoken(from), spoken(to),
                        why.empty() ? "" : " (" + why + ")");
  }
  return text;
}

}  // namespace ddpdoctor::graph
