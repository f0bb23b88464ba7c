// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

TEST(RankExited, NamesTheRankThatLeft) {
  const auto findings =
      asked("rank-exited", job().ranks(3).stack(kAll, kInBarrier).exited(1, 0).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 2}));
}

TEST(RankExited, IsSilentWhenNobodyWaits) {
  EXPECT_TRUE(asked("rank-exited", job().ranks(3).exited(kAll, 0).ended().build()).empty());
}

TEST(RankExited, IsSilentOnAFailure) {
  EXPECT_TRUE(
      asked("rank-exited", job().ranks(3).stack(kAll, kInBarrier).exited(1, 1).build()).empty());
}

TEST(RankExited, IsToldAfterTheEndByTheCallItLeftOut) {
  const auto findings =
      asked("rank-exited", job()
                               .ranks(2)
                               .history(kAll, 1, 3, "all_reduce", "train@/srv/train.py:21")
                               .call(0, {.operation = "all_reduce",
                                         .sequence = 4,
                                         .site = "train@/srv/train.py:21",
                                         .state = model::CallState::kFailed})
                               .exited(0, 1)
                               .exited(1, 0)
                               .ended()
                               .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 21);
}

TEST(RankExited, CountsARankThatTorchAbortedWhileItEnded) {
  const auto told = [](bool ending) {
    JobBuilder builder = job();
    builder.ranks(2)
        .history(kAll, 1, 3, "all_reduce", "train@/srv/train.py:21")
        .call(0, {.operation = "all_reduce",
                  .sequence = 4,
                  .site = "train@/srv/train.py:21",
                  .state = model::CallState::kFailed})
        .killed(0, 15)
        .killed(1, 6)
        .fact("abort", {{"ending", ending}}, 1)
        .ended();
    return builder.build();
  };
  const auto findings = asked("rank-exited", told(true));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 21);
  EXPECT_EQ(asked("dead-rank", told(true)).at(0).confidence, Confidence::kPossible);
  EXPECT_TRUE(asked("rank-exited", told(false)).empty());
  EXPECT_EQ(asked("dead-rank", told(false)).at(0).confidence, Confidence::kCertain);
}

}  // namespace
}  // namespace ddpdoctor::detectors
