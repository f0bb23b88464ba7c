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

TEST(Undetermined, NamesTheRankWhoseWatchdogStoodStill) {
  model::JobModel log;
  log.facts.push_back({.rank = 2, .pid = {}, .kind = "watchdog-stuck", .fields = {}});
  log.facts.back().fields["seconds"] = std::int64_t{480};
  const Findings findings = asked("undetermined", log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
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

TEST(Undetermined, SaysWhatToCaptureWhenNothingCanBeRead) {
  JobBuilder builder = job();
  builder.ranks(2).unobserved(kAll).progress(model::Progress::kUnknown);
  const Findings findings = asked("undetermined", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].fix.find("Capture stacks"), std::string::npos);
}

TEST(Undetermined, SaysThatEverybodyWaitsForTheGpu) {
  constexpr const char* kItem =
      "native:cudaStreamSynchronize | native:at::native::item | py:train@/srv/train.py:9";
  const Findings findings = asked("undetermined", job().ranks(2).stack(kAll, kItem).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("wait for their GPUs"), std::string::npos);
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_TRUE(asked("undetermined", moving(job().ranks(2).stack(kAll, kItem).build())).empty());
}

TEST(Undetermined, AsksForASecondLook) {
  const Findings findings =
      asked("undetermined", job().ranks(2).stack(kAll, kInBarrier).looked_once().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].fix.find("second observation"), std::string::npos);
  EXPECT_EQ(findings[0].summary.find("nothing moves"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::detectors
