// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4)
      .stack(kAll, "native:clock_nanosleep | py:idle@/srv/train.py:20")
      .stack(3, in("barrier", "py:finish@/srv/train.py:9"));
  return builder;
}

TEST(ExtraRankInCollective, NamesTheFewWhoCame) {
  const Findings findings = asked("extra-rank-in-collective", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{3}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_TRUE(asked("missing-rank", told().build()).empty());
}

TEST(ExtraRankInCollective, IsSilentWhenMostCameOrTheOthersWork) {
  JobBuilder most = told();
  most.stack({1, 2}, in("barrier", "py:finish@/srv/train.py:9"));
  EXPECT_TRUE(asked("extra-rank-in-collective", most.build()).empty());
  JobBuilder working = told();
  working.computing({0, 1, 2});
  EXPECT_TRUE(asked("extra-rank-in-collective", working.build()).empty());
}

TEST(ExtraRankInCollective, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = told();
  builder.unobserved(0);
  EXPECT_TRUE(nothing_likely(asked("extra-rank-in-collective", builder.build())));
}

TEST(ExtraRankInCollective, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("extra-rank-in-collective", told().build())),
            essence(asked("extra-rank-in-collective", reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
