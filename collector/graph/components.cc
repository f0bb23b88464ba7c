// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/components.h"

#include <algorithm>
#include <limits>

namespace ddpdoctor::graph {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

class Components {
 public:
  explicit Components(const std::vector<std::vector<std::size_t>>& targets)
      : targets_(targets),
        order_(targets.size(), kNone),
        lowest_(targets.size(), kNone),
        component_(targets.size(), kNone) {}

  std::vector<std::size_t> all() {
    for (std::size_t node = 0; node < targets_.size(); ++node) {
      if (order_[node] == kNone) {
        walk(node);
      }
    }
    return std::move(component_);
  }

 private:
  struct Visit {
    std::size_t node;
    std::size_t next = 0;  // index of the target to follow next
  };

  void enter(std::size_t node) {
    order_[node] = lowest_[node] = reached_++;
    unplaced_.push_back(node);
    visits_.push_back({.node = node});
  }

  void walk(std::size_t start) {
    enter(start);
    while (!visits_.empty()) {
      Visit& visit = visits_.back();
      const std::size_t node = visit.node;
      if (visit.next == targets_[node].size()) {
        leave(node);
        continue;
      }
      const std::size_t target = targets_[node][visit.next++];
      if (order_[target] == kNone) {
        enter(target);
      } else if (component_[target] == kNone) {
        lowest_[node] = std::min(lowest_[node], order_[target]);
      }
    }
  }

  void leave(std::size_t node) {
    visits_.pop_back();
    if (!visits_.empty()) {
      const std::size_t from = visits_.back().node;
      lowest_[from] = std::min(lowest_[from], lowest_[node]);
    }
    if (lowest_[node] != order_[node]) {
      return;
    }
    while (component_[node] == kNone) {
      component_[unplaced_.back()] = node;
      unplaced_.pop_back();
    }
  }

  const std::vector<std::vector<std::size_t>>& targets_;
  std::vector<std::size_t> order_;      // when the walk reached the node
  std::vector<std::size_t> lowest_;     // the earliest node that it reaches
  std::vector<std::size_t> component_;  // named after the node that the walk reached first
  std::vector<std::size_t> unplaced_;
  std::vector<Visit> visits_;
  std::size_t reached_ = 0;
};

}  // namespace

std::vector<std::size_t> strong_components(const std::vector<std::vector<std::size_t>>& targets) {
  return Components(targets).all();
}

}  // namespace ddpdoctor::graph
