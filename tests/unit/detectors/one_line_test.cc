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

/// `return OPERAND and CALL`: rank 1 is in the call, the others are in the next step.
model::JobModel short_circuit(const std::string& operand) {
  const std::string line = "return " + operand + " and check()";
  JobBuilder builder = job();
  builder.ranks(3).source(
      kTrain,
      "class Poll:\n  def __init__(self):\n    self.raised = False\n"
      "  def ask(self):\n    self.raised = True\n  def reached(self):\n    " +
          line +
          "\n\ndef check():\n  dist.all_reduce(flag)\n  return flag > 0\n\n"
          "def main(batches):\n  poll = Poll()\n  for x in batches:\n"
          "    dist.all_gather(sizes, x)\n    if model(x).item() > 4:\n      poll.ask()\n"
          "    if poll.reached():\n      break\n");
  const std::string step = site("main", "all_gather");
  const std::string asks = site("check", "all_reduce") + " | " + site("Poll.reached", line) +
                           " | " + site("main", "if poll.reached");
  builder.history(kAll, 1, 20, "all_gather", step);
  builder.all_reduce(1, 21, 1, asks);
  builder.history({0, 2}, 21, 21, "all_gather", step);
  builder.stack({0, 2}, in("all_gather", at("main", "all_gather")));
  builder.stack(1, in("all_reduce", at("check", "all_reduce") + " | " + at("Poll.reached", line) +
                                        " | " + at("main", "if poll.reached")));
  return builder.build();
}

TEST(OneLine, MakesItsCallOnlyIfTheOperandBeforeItIsTrue) {
  const Findings findings = asked("divergent-branch", short_circuit("self.raised"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("`self.raised`"), std::string::npos) << findings[0].summary;
  EXPECT_TRUE(asked("mismatched-op", short_circuit("self.raised")).empty());
  for (const Finding& finding : asked("divergent-branch", short_circuit("4 > 3"))) {
    EXPECT_EQ(finding.summary.find("4 > 3"), std::string::npos) << finding.summary;
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
