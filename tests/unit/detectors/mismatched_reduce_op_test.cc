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
                                    .reduce_op = "sum"});
  builder.call(2, {.operation = "all_reduce",
                   .sequence = 3,
                   .site = "step@/srv/train.py:9",
                   .reduce_op = "max"});
  return builder;
}

TEST(MismatchedReduceOp, NamesTheRankThatDiffers) {
  const Findings findings = asked("mismatched-reduce-op", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_NE(findings[0].summary.find("max"), std::string::npos);
}

TEST(MismatchedReduceOp, IsSaidAlsoOfAJobThatMoves) {
  EXPECT_EQ(asked("mismatched-reduce-op", moving(told().build())).size(), 1U);
}

TEST(MismatchedReduceOp, IsSilentWhenAllAgreeOrOneIsUnknown) {
  EXPECT_TRUE(
      asked("mismatched-reduce-op",
            job().ranks(4).call(kAll, {.operation = "all_reduce", .reduce_op = "sum"}).build())
          .empty());
  EXPECT_TRUE(
      asked("mismatched-reduce-op", job()
                                        .ranks(2)
                                        .call(0, {.operation = "all_reduce", .reduce_op = "sum"})
                                        .call(1, {.operation = "all_reduce"})
                                        .build())
          .empty());
}

TEST(MismatchedReduceOp, AccusesNoUnobservedRank) {
  JobBuilder builder = job();
  builder.ranks(2).call(0, {.operation = "all_reduce", .reduce_op = "sum"}).unobserved(1);
  EXPECT_TRUE(asked("mismatched-reduce-op", builder.build()).empty());
}

TEST(MismatchedReduceOp, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("mismatched-reduce-op", told().build())),
            essence(asked("mismatched-reduce-op", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
