// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told(double late) {
  JobBuilder builder = job();
  builder.ranks(3);
  for (int i = 1; i <= 20; ++i) {
    builder.call({0, 1}, {.operation = "all_reduce", .sequence = i, .time = 100.0 + 0.5 * i});
    builder.call(2, {.operation = "all_reduce", .sequence = i, .time = 100.0 + 0.5 * i + late});
  }
  return builder;
}

TEST(Straggler, NamesTheRankThatIsAlwaysLast) {
  const Findings findings = asked("straggler", moving(told(0.3).build()));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
}

TEST(Straggler, NamesARankThatBecameSlowLately) {
  const auto lately = [](int slow, model::Progress progress) {
    JobBuilder builder = job();
    builder.ranks(3);
    for (int i = 1; i <= 200; ++i) {
      const double at = 100.0 + 0.5 * i;
      builder.call({0, 1}, {.operation = "all_reduce", .sequence = i, .time = at});
      builder.call(
          2, {.operation = "all_reduce", .sequence = i, .time = at + (i > 200 - slow ? 0.3 : 0)});
    }
    return asked("straggler", builder.progress(progress).build());
  };
  const Findings findings = lately(22, model::Progress::kMoving);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_NE(findings[0].summary.find("of the newest 20"), std::string::npos);
  EXPECT_TRUE(lately(12, model::Progress::kMoving).empty());
  EXPECT_TRUE(lately(22, model::Progress::kStill).empty());
}

TEST(Straggler, IsSilentWhenRanksComeTogether) {
  EXPECT_TRUE(asked("straggler", told(0.005).build()).empty());
}

TEST(Straggler, IsSilentWithoutTimesAndWithoutTheRecordsOfARank) {
  EXPECT_TRUE(asked("straggler", job().ranks(3).history(kAll, 1, 20).build()).empty());
  EXPECT_TRUE(asked("straggler", job().ranks(2).history(0, 1, 20).unobserved(1).build()).empty());
}

TEST(Straggler, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("straggler", told(0.3).build())),
            essence(asked("straggler", records_reversed(told(0.3).build()))));
}

TEST(Straggler, ExplainsThePhaseInWhichItIsSeen) {
  const auto of = [](std::string_view kind) { return find(kind)->specificity; };
  EXPECT_GT(of("straggler"), of("long-phase"));
}

}  // namespace
}  // namespace ddpdoctor::detectors
