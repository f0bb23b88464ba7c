// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/exception_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "buffers-inplace";
constexpr std::string_view kMessage =
    R"log(RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation)log";

Findings told(std::string_view wraps) {
  return asked(kKind, tests::job()
                          .ranks(2)
                          .stack(0, kInBarrier)
                          .exited(1, 1)
                          .source("/srv/train.py", wraps)
                          .log({}, traceback_ending(kMessage))
                          .build());
}

TEST(BuffersInplace, ReadsTheMessageTheRankAndTheLineWhereDdpIsUsed) {
  const Findings findings = told("critic = DDP(Critic())");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(BuffersInplace, IsSilentWithoutDdp) {
  EXPECT_TRUE(told("critic = Critic()").empty());
  EXPECT_TRUE(told("# DDP(Critic())").empty());
}

TEST(BuffersInplace, IsSilentOnOtherMessages) {
  expect_silence_on_other_messages(kKind);
}

TEST(BuffersInplace, OnlySuspectsAMessageThatTheJobSurvived) {
  expect_doubt_when_survived(kKind, kMessage);
}

}  // namespace
}  // namespace ddpdoctor::detectors
