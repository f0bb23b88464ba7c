// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/unlike_variables.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

using Environment = std::map<std::string, std::string>;

std::vector<Fact> of(const std::vector<Environment>& environments) {
  sources::JobTree tree;
  std::vector<Process> processes;
  for (std::size_t i = 0; i < environments.size(); ++i) {
    tree.processes.emplace_back().row.environment = environments[i];
    Process& process = processes.emplace_back();
    process.role = Role::kRank;
    process.rank = static_cast<Rank>(i);
  }
  return unlike_variables(tree, processes);
}

TEST(UnlikeVariables, AreNamedWithTheirSidesAndNeverWithAValue) {
  const auto facts = of({{{"MODE", "fast"}, {"A", "1"}},
                         {{"MODE", "slow"}, {"A", "1"}},
                         {{"MODE", "fast"}, {"A", "1"}},
                         {},
                         {{"A", "1"}}});
  ASSERT_EQ(facts.size(), 1);  // nothing could be read of rank 3: it is ignored
  EXPECT_EQ(facts[0].text("name"), "MODE");
  EXPECT_EQ(facts[0].text("unset"), "4");
  EXPECT_EQ(facts[0].list("sides"), (std::vector<std::string>{"0,2", "1"}));
  EXPECT_EQ(facts[0].fields.size(), 3);
}

TEST(UnlikeVariables, WhatIsAlikeOrSecretOrOfTheJobIsLeftOut) {
  EXPECT_TRUE(of({{{"MODE", "fast"}}, {{"MODE", "fast"}}}).empty());
  EXPECT_TRUE(of({{{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"API_TOKEN", "a"}},
                  {{"RANK", "1"}, {"LOCAL_RANK", "1"}, {"API_TOKEN", "b"}}})
                  .empty());
}

}  // namespace
}  // namespace ddpdoctor::model
