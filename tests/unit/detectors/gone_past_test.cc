// SPDX-License-Identifier: Apache-2.0
// A pipeline whose first stage skipped a call that it shares with the last: the last waits for it,
// the others in messages of the next step.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kStages =
    "def tie(params):\n  for p in params:\n    if p.grad is None:\n      continue\n"
    "    dist.all_reduce(p.grad, group=tied)\n\n"
    "def step():\n  dist.send(x, after)\n  tie(shared)\n\n"
    "def main():\n  for i in range(90):\n    step()\n";

/// Rank 0 and 1 are in iteration `sends` of the loop, rank 2 in the sixth.
model::JobModel pipeline(std::int64_t sends) {
  const std::string around = " | " + at("main", "    step()");
  JobBuilder builder = job();
  builder.ranks(3)
      .group("1", {0, 2})
      .source(kTrain, kStages)
      .call(2, {.operation = "all_reduce",
                .sequence = 6,
                .group = "1",
                .site = site("tie", "dist.all_reduce") + " | " + site("step", "tie(shared)")})
      .stack(0, in("send", at("step", "dist.send") + around))
      .stack(1, in("send", at("step", "dist.send") + around))
      .stack(2, in("all_reduce",
                   at("tie", "dist.all_reduce") + " | " + at("step", "tie(shared)") + around));
  model::JobModel told = builder.build();
  put_loops(told, 0, "main", {over("range", sends, 90)});
  put_loops(told, 1, "main", {over("range", sends, 90)});
  put_loops(told, 2, "main", {over("range", 6, 90)});
  return told;
}

TEST(GonePast, TheStageThatSkippedTheSharedCallIsBlamed) {
  const Findings findings = asked("divergent-branch", pipeline(7));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_NE(findings[0].summary.find("`p.grad is None`"), std::string::npos) << findings[0].summary;
  EXPECT_TRUE(asked("p2p-deadlock", pipeline(7)).empty());
}

TEST(GonePast, IsNoStageOfTheSameStepThatHasNotComeThere) {
  EXPECT_TRUE(asked("divergent-branch", pipeline(6)).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
