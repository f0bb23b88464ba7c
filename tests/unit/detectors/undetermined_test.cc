// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(3).stack({0, 1}, in("all_reduce", "py:main@/srv/train.py:9")).unobserved(2);
  return builder;
}

TEST(Undetermined, SaysWhatToCaptureOfTheUnobservedRank) {
  const Findings findings = asked("undetermined", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].fix.find("stacks of rank 2"), std::string::npos);
}

TEST(Undetermined, IsNeverMoreThanPossible) {
  EXPECT_TRUE(nothing_likely(asked("undetermined", told().build())));
}

TEST(Undetermined, IsSilentWhenNobodyWaitsOrTheJobMoves) {
  EXPECT_TRUE(asked("undetermined", moving(told().build())).empty());
  EXPECT_TRUE(asked("undetermined", job().ranks(2).python(kAll, kTrain, 3, "f").build()).empty());
}

TEST(Undetermined, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("undetermined", told().build())),
            essence(asked("undetermined", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
