// SPDX-License-Identifier: Apache-2.0
// Two calls in one line: a comprehension over meters, one of which is empty on some ranks; these
// skip its call and begin the next epoch.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

struct Story {
  std::string exit = "if not self.n:";  // above the meter's call
  std::string line = "text = [m.value() for m in meters]";
  std::string backward = "loss(x).backward()";  // the step
};

/// Ten steps, one call of the line on all ranks; then rank 1 makes a second one, and the others are
/// in a backward. All processes have ended.
model::JobModel told(const Story& story) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain,
                          "def add(self, x):\n  self.n += 1\n\ndef value(self):\n  " + story.exit +
                              "\n    return 0.0\n  dist.all_reduce(self.sums)\n\ndef main():\n"
                              "  for epoch in range(epochs):\n    for x in loader:\n      " +
                              story.backward + "\n    " + story.line + "\n  dist.barrier()\n");
  const std::string meter = site("value", "all_reduce") + " | " + site("main", story.line);
  const std::string step = site("main", "backward()");
  std::int64_t next = 1;
  for (int i = 0; i < 10; ++i) {
    builder.all_reduce(kAll, next++, 8, step);
  }
  builder.all_reduce(kAll, next++, 2, meter);
  builder.all_reduce(1, next, 2, meter).all_reduce({0, 2}, next, 8, step);
  return builder.build();
}

TEST(OneLine, ASecondCallOfItParts) {
  const Findings findings = asked("divergent-branch", told({}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);  // one more meter would look the same
  EXPECT_NE(findings[0].summary.find("`not self.n`"), std::string::npos);
  EXPECT_TRUE(asked("uneven-inputs", told({})).empty());
}

TEST(OneLine, IsAnsweredForSureByATestOfData) {
  const Findings findings = asked("divergent-branch", told({.exit = "if self.sums.isnan():"}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
}

TEST(OneLine, SaysNothingOfWhatEveryRankHasAlike) {
  for (const Finding& finding : asked("divergent-branch", told({.exit = "if 3 > 4:"}))) {
    EXPECT_EQ(finding.summary.find("3 > 4"), std::string::npos) << finding.summary;
  }
}

TEST(OneLine, MakesOneCallWithoutAComprehension) {
  EXPECT_TRUE(asked("divergent-branch", told({.line = "text = meter.value()"})).empty());
}

TEST(OneLine, MayBeReachedAgainPastAStepThatATestLeavesOut) {
  const Story skipped = {.backward = "if x.any(): loss(x).backward()"};
  for (const Finding& finding : asked("divergent-branch", told(skipped))) {
    EXPECT_EQ(finding.summary.find("not self.n"), std::string::npos);
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
