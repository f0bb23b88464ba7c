// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4).call({0, 1, 3}, {.operation = "all_reduce",
                                    .sequence = 3,
                                    .site = "step@/srv/train.py:8",
                                    .dtype = "float32"});
  builder.call(2, {.operation = "all_reduce",
                   .sequence = 3,
                   .site = "step@/srv/train.py:9",
                   .dtype = "float16"});
  return builder;
}

TEST(MismatchedDtype, NamesTheRankThatDiffers) {
  const Findings findings = asked("mismatched-dtype", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_NE(findings[0].summary.find("float16"), std::string::npos);
}

TEST(MismatchedDtype, IsSaidAlsoOfAJobThatMoves) {
  EXPECT_EQ(asked("mismatched-dtype", moving(told().build())).size(), 1U);
}

TEST(MismatchedDtype, IsSilentWhenAllAgreeOrOneIsUnknown) {
  EXPECT_TRUE(
      asked("mismatched-dtype",
            job().ranks(4).call(kAll, {.operation = "all_reduce", .dtype = "float32"}).build())
          .empty());
  EXPECT_TRUE(
      asked("mismatched-dtype", job()
                                    .ranks(2)
                                    .call(0, {.operation = "all_reduce", .dtype = "float32"})
                                    .call(1, {.operation = "all_reduce"})
                                    .build())
          .empty());
}

TEST(MismatchedDtype, AccusesNoUnobservedRank) {
  JobBuilder builder = job();
  builder.ranks(2).call(0, {.operation = "all_reduce", .dtype = "float32"}).unobserved(1);
  EXPECT_TRUE(asked("mismatched-dtype", builder.build()).empty());
}

TEST(MismatchedDtype, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("mismatched-dtype", told().build())),
            essence(asked("mismatched-dtype", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
