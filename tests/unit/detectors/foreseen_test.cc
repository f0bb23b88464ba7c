// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

JobBuilder ended() {
  JobBuilder builder = job().ranks(2).history(kAll, 1, 40, "all_reduce", "main@/srv/train.py:10");
  builder.call(1, {.operation = "all_reduce",
                   .sequence = 41,
                   .site = "main@/srv/train.py:10",
                   .state = model::CallState::kFailed});
  return builder.killed(0, 15).exited(1, 1).ended();
}

JobBuilder& foreseen(JobBuilder& builder, const std::string& shorter) {
  return builder.fact("foreseen",
                      {{"of", std::string("uneven-inputs")},
                       {"ranks", std::vector<std::string>{shorter}},
                       {"summary", std::string("rank 0 has 40 steps in `for b in loader` "
                                               "(train.py:8), but rank 1 has 44; the longer ones "
                                               "will hang in the last step")},
                       {"file", std::string("/srv/train.py")},
                       {"line", std::int64_t{8}},
                       {"function", std::string("main")}});
}

TEST(Foreseen, WhatWasSaidOfTheLoopsIsTheCauseOfTheEnd) {
  JobBuilder builder = ended();
  const auto findings = asked("uneven-inputs", foreseen(builder, "0").build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 8);
  EXPECT_EQ(findings[0].summary.find("will hang"), std::string::npos);
}

TEST(Foreseen, AnEndOfAnotherKindIsNotWhatWasForeseen) {
  JobBuilder builder = ended();
  EXPECT_TRUE(asked("uneven-inputs", foreseen(builder, "1").build()).empty());
  EXPECT_TRUE(asked("uneven-inputs", ended().build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
