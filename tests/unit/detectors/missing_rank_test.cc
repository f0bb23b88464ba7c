// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def wait_for_config():
    while True:
        time.sleep(0.5)

def main():
    for step in range(100):
        if dist.get_rank() == 1:
            wait_for_config()
        dist.all_reduce(grads)
)";

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kSource).history(kAll, 1, 9).all_reduce({0, 2, 3}, 10);
  builder.stack(kAll, in("all_reduce", at("main", "all_reduce")));
  builder.stack(1, "native:clock_nanosleep | native:time_sleep | " +
                       at("wait_for_config", "time.sleep") + " | " +
                       at("main", "    wait_for_config()"));
  return builder;
}

TEST(MissingRank, SaysWhereTheRankIsInstead) {
  const Findings findings = asked("missing-rank", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 2, 3}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_NE(findings[0].summary.find("rank 1 never joined all_reduce #10 of default_pg"),
            std::string::npos);
}

TEST(MissingRank, IsNotCalledRankConditionalForSleepingUnderATestOfTheRank) {
  EXPECT_TRUE(asked("rank-conditional-collective", told().build()).empty());
}

TEST(MissingRank, WorksFromStacksAlone) {
  model::JobModel stacks_only = told().build();
  stacks_only.collectives.clear();
  const Findings findings = asked("missing-rank", stacks_only);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(MissingRank, NeverAccusesAnUnobservedRank) {
  JobBuilder builder = job();
  builder.ranks(3).stack({0, 1}, in("all_reduce", "py:main@/srv/train.py:9")).unobserved(2);
  EXPECT_TRUE(asked("missing-rank", builder.build()).empty());
}

TEST(MissingRank, LeavesTheDeadToOthers) {
  JobBuilder builder = job();
  builder.ranks(3).stack({0, 1}, in("all_reduce", "py:main@/srv/train.py:9")).killed(2, 9);
  EXPECT_TRUE(asked("missing-rank", builder.build()).empty());
}

TEST(MissingRank, IsSilentWhenTheRankWorksOrTheJobMoves) {
  JobBuilder builder = told();
  builder.computing(1);
  EXPECT_TRUE(asked("missing-rank", builder.build()).empty());
  EXPECT_TRUE(asked("missing-rank", moving(told().build())).empty());
}

TEST(MissingRank, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("missing-rank", told().build())),
            essence(asked("missing-rank", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
