// SPDX-License-Identifier: Apache-2.0
// Waiting with a choice: a thread at a pipe or a semaphore goes on when any one of several threads
// acts, a rank in a collective only when all do. Threads of which nobody who could end their wait
// can go on are stuck for ever. Knots are the smallest such sets: they wait for nobody else.
#pragma once

#include <cstddef>
#include <vector>

namespace ddpdoctor::graph {

/// One thread. Numbers are places in the list of all nodes.
struct ChoiceNode {
  bool goes_on = true;                // it runs, or it is not known what it waits for
  bool needs_all = false;             // all of `enders`, not any
  std::vector<std::size_t> enders{};  // who could end its wait; empty = nobody
};

/// For each node, whether it can never go on.
std::vector<bool> stuck_for_ever(const std::vector<ChoiceNode>& nodes);

/// Stuck nodes that wait for each other and for nobody else, each set ascending. A node that nobody
/// can help is a knot of its own.
std::vector<std::vector<std::size_t>> knots(const std::vector<ChoiceNode>& nodes);

}  // namespace ddpdoctor::graph
