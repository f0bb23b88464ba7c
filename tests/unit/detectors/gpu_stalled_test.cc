// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl").history(kAll, 1, 807);
  builder.call(kAll, {.operation = "all_reduce",
                      .sequence = 808,
                      .site = "step@/srv/train.py:8",
                      .state = model::CallState::kStarted});
  return builder;
}

TEST(GpuStalled, BlamesNobodyWhenAllRanksAreThere) {
  const Findings findings = asked("gpu-stalled", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].summary.find("#808"), std::string::npos);
}

TEST(GpuStalled, NamesTheOldestOfThoseUnderWay) {
  JobBuilder builder = told();
  builder.call(kAll, {.operation = "broadcast",
                      .sequence = 809,
                      .site = "step@/srv/train.py:9",
                      .state = model::CallState::kEnqueued});
  const Findings findings = asked("gpu-stalled", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("launched all_reduce #808"), std::string::npos)
      << findings[0].summary;
}

TEST(GpuStalled, OnlySuspectsWhenTheSizeOfTheWorldIsNotKnown) {
  model::JobModel excerpt = told().build();
  excerpt.world_size.reset();
  const Findings findings = asked("gpu-stalled", excerpt);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  excerpt.groups[0].name = "tp";
  EXPECT_TRUE(asked("gpu-stalled", excerpt).empty()) << "who else is in tp?";
}

TEST(GpuStalled, IsSilentWhenARankIsMissing) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").history(kAll, 1, 3).all_reduce(0, 4);
  EXPECT_TRUE(asked("gpu-stalled", builder.build()).empty());
}

TEST(GpuStalled, IsSilentOnCompletedCallsAndWhileTheJobMoves) {
  EXPECT_TRUE(
      asked("gpu-stalled", job().ranks(4).backend("nccl").history(kAll, 1, 10).build()).empty());
  EXPECT_TRUE(asked("gpu-stalled", moving(told().build())).empty());
}

TEST(GpuStalled, IsSilentWhenARankIsUnobserved) {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl").unobserved(2);
  builder.call({0, 1},
               {.operation = "all_reduce", .sequence = 808, .state = model::CallState::kStarted});
  EXPECT_TRUE(asked("gpu-stalled", builder.build()).empty());
}

TEST(GpuStalled, IsSilentWhenRanksPartedInAnotherGroup) {
  JobBuilder builder = told();
  builder.group("1", {0, 1}, "tp");
  builder.call(0, {.operation = "all_gather",
                   .sequence = 1,
                   .group = "1",
                   .state = model::CallState::kStarted});
  EXPECT_TRUE(asked("gpu-stalled", builder.build()).empty());
}

TEST(GpuStalled, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("gpu-stalled", told().build())),
            essence(asked("gpu-stalled", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
