// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(3)
      .history(kAll, 1, 2)
      .broadcast({0, 1}, 3, 0, "share@/srv/train.py:5")
      .broadcast(2, 3, 2, "share@/srv/train.py:7");
  return builder;
}

TEST(MismatchedRoot, NamesTheRankWithAnotherRoot) {
  const Findings findings = asked("mismatched-root", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
}

TEST(MismatchedRoot, SaysOfEachRankOnlyItsOwnRoot) {
  JobBuilder builder = job();
  builder.ranks(4)
      .history(kAll, 1, 2)
      .broadcast({0, 1}, 3, 0, "share@/srv/train.py:5")
      .broadcast(2, 3, 2, "share@/srv/train.py:5")
      .broadcast(3, 3, 3, "share@/srv/train.py:5");
  const Findings findings = asked("mismatched-root", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2, 3}));
  EXPECT_TRUE(findings[0].summary.starts_with("rank 2 passed rank 2 as the root"))
      << findings[0].summary;
  EXPECT_TRUE(std::any_of(
      findings[0].evidence.begin(), findings[0].evidence.end(), [](const Evidence& one) {
        return one.text.starts_with("rank 3 called") && one.text.ends_with("root rank 3");
      }));
}

TEST(MismatchedRoot, ReadsTheArgumentsOfTheBlockedCalls) {
  JobBuilder builder = job();
  builder.ranks(3)
      .stack({0, 2}, in("broadcast", "py:share@/srv/train.py:5", "src=1"))
      .stack(1, in("broadcast", "py:share@/srv/train.py:5", "src=0"));
  const Findings findings = asked("mismatched-root", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

constexpr std::string_view kShare = "py:share@/srv/train.py:5";

/// Rank 1 has completed the first call and is in the next one, on the same line.
JobBuilder let_through(const std::string& second_root) {
  JobBuilder builder = job();
  builder.ranks(3)
      .stack({0}, in("broadcast", std::string(kShare), "src=0"))
      .stack({1}, in("broadcast", std::string(kShare), "src=2"))
      .stack({2}, in("broadcast", std::string(kShare), "src=" + second_root));
  for (const model::Rank rank : {0, 1, 2}) {
    builder.call(rank, {.operation = "broadcast", .sequence = 9, .site = "share@/srv/train.py:5"});
  }
  builder.call(1, {.operation = "broadcast", .sequence = 10, .site = "share@/srv/train.py:5"});
  return builder;
}

TEST(MismatchedRoot, CountsTheVoteOfARankThatWasLetThrough) {
  const Findings findings = asked("mismatched-root", let_through("2").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
}

TEST(MismatchedRoot, WhoIsThroughGotItsDataFromTheOneThatSends) {
  JobBuilder builder = job();
  builder.ranks(3)
      .stack({0}, in("broadcast", std::string(kShare), "src=2"))
      .stack({1}, in("broadcast", std::string(kShare), "src=1"))
      .stack({2}, in("broadcast", std::string(kShare), "src=2"));  // of its next iteration
  for (const model::Rank rank : {0, 1, 2}) {
    builder.call(rank, {.operation = "broadcast", .sequence = 9, .site = "share@/srv/train.py:5"});
  }
  builder.call(2, {.operation = "broadcast", .sequence = 10, .site = "share@/srv/train.py:5"});
  const Findings findings = asked("mismatched-root", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_NE(findings[0].summary.find("#9"), std::string::npos);
}

TEST(MismatchedRoot, RootsOfTwoCallsOfALoopProveNothing) {
  EXPECT_TRUE(asked("mismatched-root", let_through("0").build()).empty());
}

TEST(MismatchedRoot, IsSilentOnTheHealthyTwin) {
  EXPECT_TRUE(asked("mismatched-root", job().ranks(3).broadcast(kAll, 1, 0).build()).empty());
}

TEST(MismatchedRoot, AccusesNoUnobservedRank) {
  EXPECT_TRUE(
      asked("mismatched-root", job().ranks(2).broadcast(0, 1, 0).unobserved(1).build()).empty());
}

TEST(MismatchedRoot, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("mismatched-root", told().build())),
            essence(asked("mismatched-root", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
