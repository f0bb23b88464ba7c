// SPDX-License-Identifier: Apache-2.0
// A loop inside a step: a rank that has not reached it in the same step has not left it.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kHooks =
    "def main():\n    for step in range(9):\n        try:\n            learn(step)\n"
    "        except ValueError:\n            pass\n        for hook in hooks:\n"
    "            hook(step)\n";

/// Rank 2 is in the second hook of its step; ranks 0 and 1 are in learn() of their step.
model::JobModel in_steps(std::int64_t theirs, std::int64_t own) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kHooks);
  builder.stack({0, 1}, in("all_reduce", "py:learn@/srv/net.py:3 | " + at("main", "learn(step)")));
  builder.stack(2, in("all_gather", "py:hook@/srv/hooks.py:3 | " + at("main", "hook(step)")));
  model::JobModel told = builder.build();
  for (const model::Rank rank : {0, 1}) {
    put_loops(told, rank, "main", {over("range", theirs, 9)});
  }
  put_loops(told, 2, "main", {over("range", own, 9), over("list", 2, 3)});
  return told;
}

TEST(LoopOfOneStep, IsNotLeftByRanksThatHaveNotReachedIt) {
  EXPECT_TRUE(asked("uneven-inputs", in_steps(4, 4)).empty());
  const Findings findings = asked("divergent-branch", in_steps(4, 4));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.back().line, 5) << findings[0].summary;
}

TEST(LoopOfOneStep, MayBeLeftByRanksInTheNextStep) {
  EXPECT_EQ(asked("uneven-inputs", in_steps(4, 3)).size(), 1U);
}

}  // namespace
}  // namespace ddpdoctor::detectors
