// SPDX-License-Identifier: Apache-2.0
// The wait-for graph as Graphviz DOT. Ranks that wait for the same, and for which the same wait,
// are one node, so that a thousand of them stay readable.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

namespace {

using graph::Edge;
using graph::WaitForGraph;

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char each : base::printable(text)) {
    if (each == '"' || each == '\\') {
      out += '\\';
    }
    out += each;
  }
  return out + '"';
}

std::optional<model::Rank> rank_of(std::string_view node) {
  constexpr std::string_view kPrefix = "rank:";
  constexpr std::size_t kMostDigits = 8;
  if (!node.starts_with(kPrefix) || node.size() > kPrefix.size() + kMostDigits) {
    return std::nullopt;
  }
  model::Rank rank = 0;
  for (const char digit : node.substr(kPrefix.size())) {
    if (digit < '0' || digit > '9') {
      return std::nullopt;
    }
    rank = rank * 10 + (digit - '0');
  }
  return rank;
}

/// "rank:3" → "rank 3", others as they are.
std::string said(const std::string& node) {
  const auto rank = rank_of(node);
  return rank ? fmt::format("rank {}", *rank) : node;
}

/// Which node each node is drawn as, and what is written in it.
struct Drawing {
  std::map<std::string, std::string> drawn_as;
  std::map<std::string, std::string> labels;  // of the drawn ones
};

Drawing draw(const WaitForGraph& graph, const std::set<model::Rank>& culprits) {
  std::map<std::string, std::vector<std::string>> alike;
  for (const std::string& node : graph.nodes()) {
    const auto rank = rank_of(node);
    std::string key = "node " + node;
    if (rank && !culprits.contains(*rank)) {
      std::set<std::string> aims;
      for (const Edge* edge : graph.from(node)) {
        aims.insert("> " + edge->to + '\n' + edge->why);
      }
      for (const Edge* edge : graph.to(node)) {
        aims.insert("< " + edge->from + '\n' + edge->why);
      }
      key = "waits";
      for (const std::string& aim : aims) {
        key += '\n' + aim;
      }
    }
    alike[key].push_back(node);
  }
  Drawing out;
  for (const auto& [key, nodes] : alike) {
    std::vector<int> ranks;
    for (const std::string& node : nodes) {
      out.drawn_as[node] = nodes.front();
      if (const auto rank = rank_of(node)) {
        ranks.push_back(*rank);
      }
    }
    std::sort(ranks.begin(), ranks.end());
    out.labels[nodes.front()] =
        nodes.size() > 1 ? "ranks " + base::ranges(ranks) : said(nodes.front());
  }
  return out;
}

/// Steps of the circles, as drawn.
std::set<std::pair<std::string, std::string>> circles(const WaitForGraph& graph,
                                                      const Drawing& drawing) {
  std::set<std::pair<std::string, std::string>> out;
  for (const std::vector<std::string>& cycle : graph.cycles()) {
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      out.emplace(drawing.drawn_as.at(cycle[i]),
                  drawing.drawn_as.at(cycle[(i + 1) % cycle.size()]));
    }
  }
  return out;
}

}  // namespace

std::string dot(const diagnosis::Diagnosis& diagnosis) {
  const WaitForGraph& graph = diagnosis.examination.waits;
  std::set<model::Rank> culprits;
  if (!diagnosis.findings.empty()) {
    const std::vector<model::Rank> ranks = diagnosis.findings.front().culprits.values();
    culprits.insert(ranks.begin(), ranks.end());
  }
  const Drawing drawing = draw(graph, culprits);
  const auto deadlock = circles(graph, drawing);
  std::string out = "digraph wait_for {\n  rankdir=LR;\n  node [shape=box];\n";
  if (!diagnosis.findings.empty()) {
    out += fmt::format("  label={};\n", in_quotes(diagnosis.findings.front().summary));
  }
  for (const auto& [node, label] : drawing.labels) {
    const auto rank = rank_of(node);
    out += fmt::format("  {} [label={}{}];\n", in_quotes(node), in_quotes(label),
                       rank && culprits.contains(*rank) ? ", style=filled, fillcolor=salmon" : "");
  }
  std::set<std::string> lines;
  for (const Edge& edge : graph.edges()) {
    const std::string& from = drawing.drawn_as.at(edge.from);
    const std::string& to = drawing.drawn_as.at(edge.to);
    lines.insert(fmt::format("  {} -> {} [label={}{}];\n", in_quotes(from), in_quotes(to),
                             in_quotes(edge.why),
                             deadlock.contains({from, to}) ? ", color=red, penwidth=2" : ""));
  }
  for (const std::string& line : lines) {
    out += line;
  }
  return out + "}\n";
}

}  // namespace ddpdoctor::viewer
