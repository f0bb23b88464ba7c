// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/passed.h"

#include <algorithm>

#include "collector/program/flow/separation.h"
#include "collector/program/questions/code.h"

namespace ddpdoctor::program {
namespace {

/// The call of a point that is evaluated last.
Node last_call(Node evaluated, const std::function<bool(Node)>& is_one) {
  Node last;
  each_inside(evaluated, [&](Node node) {
    if (node.is(NodeKind::kCall) && is_one(node) && (!last || node.end() >= last.end())) {
      last = node;
    }
  });
  return last;
}

}  // namespace

PassedCalls last_passed(const SourceText& text, int line, bool here,
                        const std::function<bool(Node)>& is_one) {
  PassedCalls passed;
  const SourceIndex& index = index_of(text);
  if (index.empty()) {
    return passed;
  }
  const FlowGraph& graph = flow_of(text, index.function_at(line)).graph;
  const std::vector<PointId> start = graph.points_at(line);
  std::vector<bool> seen(graph.points().size());
  std::vector<PointId> open;
  const auto visit = [&](PointId at, bool counts) {
    const Node call = counts ? last_call(graph.points()[at].node, is_one) : Node();
    if (call) {
      passed.calls.push_back(call);
      return;
    }
    passed.from_start = passed.from_start || at == FlowGraph::kEntry;
    for (const PointId before : graph.points()[at].in) {
      if (!seen[before]) {
        seen[before] = true;
        open.push_back(before);
      }
    }
  };
  for (const PointId id : graph.points_at(line)) {
    visit(id, here);
  }
  while (!open.empty()) {  // a loop leads back to the line itself: an iteration before
    const PointId at = open.back();
    open.pop_back();
    visit(at, true);
  }
  std::sort(passed.calls.begin(), passed.calls.end(),
            [](Node a, Node b) { return a.begin() < b.begin(); });
  passed.calls.erase(std::unique(passed.calls.begin(), passed.calls.end()), passed.calls.end());
  return passed;
}

}  // namespace ddpdoctor::program
