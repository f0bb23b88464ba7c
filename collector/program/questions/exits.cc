// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/exits.h"

#include <algorithm>

#include "collector/program/flow/separation.h"
#include "collector/program/questions/block_of.h"
#include "collector/program/questions/leaving.h"

namespace ddpdoctor::program {
namespace {

/// The line of the statement with which a suite leaves.
int leaving_line(const Code& code, std::size_t header) {
  int line = code[header].line;
  for (Node suite = code.suite(header); suite;) {
    Node last;
    for (Node child = suite.first_child(); child; child = child.next_sibling()) {
      last = child;
    }
    line = last ? last.line() : line;
    Node inner;
    for (Node child = last.first_child(); child; child = child.next_sibling()) {
      inner = child.is(NodeKind::kBlock) ? child : inner;
    }
    suite = inner;
  }
  return line;
}

}  // namespace

std::vector<WayOut> ways_out_before(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  std::vector<WayOut> out;
  if (at == kNone) {
    return out;
  }
  std::vector<std::size_t> around = code.headers_around(at);
  if (around.empty() || code.kind(around.back()) != NodeKind::kFunction) {
    around.push_back(kNone);
  }
  std::size_t inner = at;
  for (const std::size_t header : around) {
    for (const std::size_t exit : exits_between(code, header, inner, at)) {
      if (leaving_of(code, exit) == Leaving::kFunction) {
        out.push_back(
            {.line = leaving_line(code, exit), .condition = block_of(code, exit).condition});
      }
    }
    inner = header;
  }
  return out;
}

std::vector<Block> loop_exits(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  std::vector<Block> out;
  for (const std::size_t header :
       at == kNone ? std::vector<std::size_t>() : code.headers_around(at)) {
    if (code.is_loop(header)) {
      for (const std::size_t exit : ways_out_of(code, header)) {
        out.push_back(block_of(code, exit));
      }
    }
  }
  return out;
}

bool comes_round(const SourceText& text, int loop, int line) {
  const SourceIndex& index = index_of(text);
  if (index.empty()) {
    return true;
  }
  const FlowGraph& graph = flow_of(text, index.function_at(line)).graph;
  const auto is_header = [&graph, loop](PointId id) {
    const Point& point = graph.points()[id];
    return point.decision != kNone && graph.decisions()[point.decision].line == loop;
  };
  std::vector<PointId> open = graph.points_at(line);
  const bool known = !open.empty();
  std::vector<bool> seen(graph.points().size());
  while (!open.empty()) {
    const PointId at = open.back();
    open.pop_back();
    for (const Edge& edge : graph.points()[at].out) {
      if (edge.way == Way::kRaised || seen[edge.to]) {
        continue;
      }
      if (is_header(edge.to)) {
        return true;
      }
      seen[edge.to] = true;
      open.push_back(edge.to);
    }
  }
  return !known;
}

bool always_fails(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t header = code.header_at(line);
  return header != kNone && is_header(code.kind(header)) && always_fails(code, header);
}

}  // namespace ddpdoctor::program
