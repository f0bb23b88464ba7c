// SPDX-License-Identifier: Apache-2.0
// Strongly connected components of a directed graph: the parts in which every node reaches every
// other one.
#pragma once

#include <cstddef>
#include <vector>

namespace ddpdoctor::graph {

/// The component of each node; `targets` lists the nodes that its edges lead to, by number. Linear
/// in nodes and edges (Tarjan's algorithm, without recursion).
std::vector<std::size_t> strong_components(const std::vector<std::vector<std::size_t>>& targets);

}  // namespace ddpdoctor::graph
