// SPDX-License-Identifier: Apache-2.0
// Queries on the graph: where its edges end, where they form a cycle.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "collector/graph/wait_for.h"

namespace ddpdoctor::graph {
namespace {

// Step limit of the cycle search: the number of simple cycles can be exponential, and a reader
// needs only the first ones.
constexpr std::size_t kMostSteps = 200'000;

using Arrows = std::map<std::string, std::set<std::string>>;

Arrows arrows(const std::vector<Edge>& edges) {
  Arrows result;
  for (const Edge& edge : edges) {
    result[edge.from].insert(edge.to);
    result[edge.to];
  }
  return result;
}

/// Finds simple cycles whose first node is the smallest, so that each is found once.
class CycleSearch {
 public:
  CycleSearch(const Arrows& arrows, std::size_t limit) : arrows_(arrows), limit_(limit) {}

  std::vector<std::vector<std::string>> all() {
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
      if (found_.size() >= limit_ || ++steps_ > kMostSteps) {
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
  std::size_t limit_;
  std::size_t steps_ = 0;
  std::vector<std::string> path_;
  std::set<std::string> on_path_;
  std::vector<std::vector<std::string>> found_;
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

void WaitForGraph::add(Edge edge) {
  edges_.push_back(std::move(edge));
}

void WaitForGraph::add(CollectiveWait wait) {
  collective_waits_.push_back(std::move(wait));
}

std::vector<std::string> WaitForGraph::nodes() const {
  std::set<std::string> all;
  for (const Edge& edge : edges_) {
    all.insert(edge.from);
    all.insert(edge.to);
  }
  return {all.begin(), all.end()};
}

std::vector<const Edge*> WaitForGraph::from(const std::string& node) const {
  std::vector<const Edge*> result;
  for (const Edge& edge : edges_) {
    if (edge.from == node) {
      result.push_back(&edge);
    }
  }
  return result;
}

std::vector<const Edge*> WaitForGraph::to(const std::string& node) const {
  std::vector<const Edge*> result;
  for (const Edge& edge : edges_) {
    if (edge.to == node) {
      result.push_back(&edge);
    }
  }
  return result;
}

std::vector<std::string> WaitForGraph::sinks() const {
  std::set<std::string> waited_for;
  std::set<std::string> waiting;
  for (const Edge& edge : edges_) {
    waited_for.insert(edge.to);
    waiting.insert(edge.from);
  }
  std::vector<std::string> result;
  std::set_difference(waited_for.begin(), waited_for.end(), waiting.begin(), waiting.end(),
                      std::back_inserter(result));
  return result;
}

std::vector<std::vector<std::string>> WaitForGraph::cycles(std::size_t limit) const {
  const Arrows all = arrows(edges_);
  return CycleSearch(all, limit).all();
}

std::vector<std::string> WaitForGraph::ends_of_waiting(const std::string& node) const {
  const Arrows all = arrows(edges_);
  std::set<std::string> seen = {node};
  std::vector<std::string> open = {node};
  std::vector<std::string> ends;
  while (!open.empty()) {
    const std::string current = open.back();
    open.pop_back();
    const auto found = all.find(current);
    if (found == all.end()) {
      continue;
    }
    if (found->second.empty() && current != node) {
      ends.push_back(current);
    }
    for (const std::string& target : found->second) {
      if (seen.insert(target).second) {
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
