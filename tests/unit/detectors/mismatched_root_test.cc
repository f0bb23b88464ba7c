// SPDX-License-Identifier: Apache-2.0
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

TEST(MismatchedRoot, ReadsTheArgumentsOfTheBlockedCalls) {
  JobBuilder builder = job();
  builder.ranks(3)
      .stack({0, 2}, in("broadcast", "py:share@/srv/train.py:5", "src=1"))
      .stack(1, in("broadcast", "py:share@/srv/train.py:5", "src=0"));
  const Findings findings = asked("mismatched-root", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
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
