// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/headings.h"

#include <gtest/gtest.h>

namespace ddpdoctor::imports {
namespace {

using Ranks = std::vector<model::Rank>;
using Places = std::vector<Coordinates>;

TEST(Headings, NameRanksAlone) {
  EXPECT_EQ(heading_of("=== rank 3 ===").ranks, Ranks({3}));
  EXPECT_EQ(heading_of("--- ranks 1-3, 5 and 7 (same) ---").ranks, Ranks({1, 2, 3, 5, 7}));
  EXPECT_EQ(heading_of("ranks 2..4:").ranks, Ranks({2, 3, 4}));
}

TEST(Headings, NamePlacesInTheLayout) {
  EXPECT_EQ(heading_of("--- TP2 (DP1), TP3 same ---").places,
            Places({{{"TP", 2}, {"DP", 1}}, {{"TP", 3}}}));
  EXPECT_EQ(heading_of("7 of 8 schedulers (TP1 .. TP3), e.g.").places,
            Places({{{"TP", 1}}, {{"TP", 2}}, {{"TP", 3}}}));
  EXPECT_EQ(heading_of("scheduler_DP0_TP1 and DP1-2").places,
            Places({{{"DP", 0}, {"TP", 1}}, {{"DP", 1}}, {{"DP", 2}}}));
}

TEST(Headings, OtherLinesNameNoRank) {
  for (const auto* line : {"Thread 0x7f (most recent call first):", "8 GPUs, TP=8, 3 nodes", "A100",
                           "", "Python v3.10", "ranked 3rd"}) {
    EXPECT_TRUE(heading_of(line).empty()) << line;
  }
  EXPECT_TRUE(heading_of("TP1 " + std::string(200, 'x')).empty());
}

TEST(Headings, EachProcessOfTheHeadingGetsTheStack) {
  std::vector<StackDump> dumps(1, new_dump());
  dumps[0].process.pid = 7;
  give_to({.ranks = {1, 2}, .places = {}}, 0, dumps);
  ASSERT_EQ(dumps.size(), 2U);
  EXPECT_EQ(dumps[0].process.rank, 1);
  EXPECT_EQ(dumps[0].process.pid, 7);
  EXPECT_EQ(dumps[1].process.rank, 2);
  EXPECT_EQ(dumps[1].process.pid, 0);
  EXPECT_NE(dumps[0].identity, dumps[1].identity);
}

TEST(Headings, SeveralDumpsBelowOneHeadingAreNotCopied) {
  std::vector<StackDump> dumps(2, new_dump());
  give_to({.ranks = {1, 2}, .places = {}}, 0, dumps);
  EXPECT_EQ(dumps.size(), 2U);
}

}  // namespace
}  // namespace ddpdoctor::imports
