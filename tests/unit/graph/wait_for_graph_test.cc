// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collector/graph/components.h"
#include "collector/graph/wait_for.h"

namespace ddpdoctor::graph {
namespace {

using Names = std::vector<std::string>;

WaitForGraph graph_of(const std::vector<std::pair<std::string, std::string>>& edges) {
  WaitForGraph graph;
  for (const auto& [from, to] : edges) {
    graph.add({.from = from, .to = to, .kind = EdgeKind::kOther, .why = {}});
  }
  return graph;
}

TEST(StrongComponents, AreTheSetsThatReachEachOther) {
  // 0 ⇄ 1 → 2 → 3 ⇄ 4, and 5 alone
  const auto component = strong_components({{1}, {0, 2}, {3}, {4}, {3}, {}});
  ASSERT_EQ(component.size(), 6U);
  EXPECT_EQ(component[0], component[1]);
  EXPECT_EQ(component[3], component[4]);
  EXPECT_EQ(std::set<std::size_t>(component.begin(), component.end()).size(), 4U);
}

TEST(StrongComponents, OfALongChainNeedNoStack) {
  constexpr std::size_t kNodes = 500'000;
  std::vector<std::vector<std::size_t>> targets(kNodes);
  for (std::size_t i = 0; i + 1 < kNodes; ++i) {
    targets[i] = {i + 1};
  }
  targets.back() = {0};
  EXPECT_EQ(
      std::set<std::size_t>({strong_components(targets)[0], strong_components(targets)[7]}).size(),
      1U);
}

TEST(WaitForGraph, CyclesBeginAtTheirSmallestNode) {
  const WaitForGraph graph = graph_of({{"rank:2", "rank:0"},
                                       {"rank:0", "rank:1"},
                                       {"rank:1", "rank:2"},
                                       {"rank:3", "rank:1"},
                                       {"rank:1", "rank:4"}});
  EXPECT_EQ(graph.cycles(), (std::vector<Names>{{"rank:0", "rank:1", "rank:2"}}));
  EXPECT_EQ(graph.sinks(), Names{"rank:4"});
  EXPECT_EQ(graph.ends_of_waiting("rank:3"), Names{"rank:4"});
  EXPECT_TRUE(graph.ends_of_waiting("rank:4").empty());
  EXPECT_EQ(graph.from("rank:1").size(), 2U);
}

TEST(WaitForGraph, ACycleThatIsAddedLaterIsFound) {
  WaitForGraph graph = graph_of({{"a", "b"}});
  EXPECT_TRUE(graph.cycles().empty());
  graph.add({.from = "b", .to = "a", .kind = EdgeKind::kOther, .why = {}});
  EXPECT_EQ(graph.cycles(), (std::vector<Names>{{"a", "b"}}));
}

TEST(WaitForGraph, TheSearchForCyclesLooksOnlyWhereEdgesReturn) {
  // Each rank of a layer waits for all of the next one: exponentially many paths, and no cycle.
  // The cycle stands behind them in the order of names.
  std::vector<std::pair<std::string, std::string>> edges;
  for (int layer = 0; layer < 30; ++layer) {
    for (int from = 0; from < 16; ++from) {
      for (int to = 0; to < 16; ++to) {
        edges.emplace_back("a" + std::to_string(100 + layer) + "." + std::to_string(from),
                           "a" + std::to_string(101 + layer) + "." + std::to_string(to));
      }
    }
  }
  edges.emplace_back("z1", "z2");
  edges.emplace_back("z2", "z1");
  EXPECT_EQ(graph_of(edges).cycles(), (std::vector<Names>{{"z1", "z2"}}));
}

}  // namespace
}  // namespace ddpdoctor::graph
