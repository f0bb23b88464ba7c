// SPDX-License-Identifier: Apache-2.0
// Waits with alternatives: a thread at a pipe or a semaphore continues when any one of several
// threads acts; a rank in a collective only when all do. A thread is stuck forever if no thread
// that could end its wait can continue. Knots are the smallest such sets: they wait only for their
// own members.
#pragma once

#include <cstddef>
#include <vector>

namespace ddpdoctor::graph {

/// One thread. Numbers are indices in the list of all nodes.
struct ChoiceNode {
  bool goes_on = true;                // it runs, or its wait is unknown
  bool needs_all = false;             // all of `enders` must act, not just one
  std::vector<std::size_t> enders{};  // nodes that could end its wait; empty = none
};

/// For each node, whether it can never continue.
std::vector<bool> stuck_for_ever(const std::vector<ChoiceNode>& nodes);

/// Stuck nodes that wait only for each other, each set ascending. A node that no other can release
/// is a knot of its own.
std::vector<std::vector<std::size_t>> knots(const std::vector<ChoiceNode>& nodes);

}  // namespace ddpdoctor::graph
