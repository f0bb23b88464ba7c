// SPDX-License-Identifier: Apache-2.0
// Calls that a framework or a finalizer makes: the rhythm of the records shows what a rank left
// out, and the frames of the framework where it did.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kLoop = "/v/site-packages/transformers/trainer.py";
const std::string kFit = site("main", "trainer.train()");

/// Each step gathers a count and reduces the gradients, all from one line of the user's. After
/// `steps` of them, rank 1 reduces where rank 0 gathers.
model::JobModel of_trainer(std::int64_t steps, std::int64_t without_gather = -1) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, "def main():\n  trainer = Trainer(model)\n  trainer.train()\n");
  std::int64_t last = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    if (step != without_gather) {
      builder.call(kAll, {.operation = "all_gather", .sequence = ++last, .site = kFit, .count = 1});
    }
    builder.call(kAll, {.operation = "all_reduce", .sequence = ++last, .site = kFit, .count = 900});
  }
  const std::string above = " | py:inner@" + kLoop + ":1660 | " + at("main", "trainer.train()");
  builder.call(0, {.operation = "all_gather", .sequence = last + 1, .site = kFit, .count = 1})
      .call(1, {.operation = "all_reduce", .sequence = last + 1, .site = kFit, .count = 900})
      .stack(0,
             in("all_gather", "py:count@" + kLoop + ":2350 | py:epoch@" + kLoop + ":1881" + above))
      .stack(1,
             in("all_reduce", "py:step@" + kLoop + ":2126 | py:epoch@" + kLoop + ":1917" + above));
  return builder.build();
}

TEST(LeftOutCall, IsToldByTheRhythmAndWithTheLinesOfTheFramework) {
  const Findings findings = asked("divergent-branch", of_trainer(6));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("rank 1 left out all_gather"), std::string::npos)
      << findings[0].summary;
  const auto names = [&findings](const std::string& file, int line) {
    return std::any_of(findings[0].locations.begin(), findings[0].locations.end(),
                       [&](const Location& one) { return one.file == file && one.line == line; });
  };
  EXPECT_TRUE(names(kLoop, 2350));
  EXPECT_TRUE(names(kLoop, 2126));
  EXPECT_TRUE(names(kTrain, 3));
}

TEST(LeftOutCall, IsNoneWithoutARhythm) {
  EXPECT_TRUE(asked("divergent-branch", of_trainer(1)).empty());
  for (const Finding& one : asked("divergent-branch", of_trainer(4, 2))) {
    EXPECT_EQ(one.summary.find("left out"), std::string::npos) << one.summary;
  }
}

/// Ranks 0 and 2 gather when they free a window, rank 1 reduces.
model::JobModel of_finalizer(const std::string& function) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, "class Window:\n  def " + function +
                          "(self):\n    dist.all_gather(out, self.tag)\n\n"
                          "def main():\n  evaluate()\n  dist.all_reduce(loss)\n")
      .call({0, 2}, {.operation = "all_gather",
                     .sequence = 9,
                     .site = site("Window." + function, "all_gather")})
      .call(1, {.operation = "all_reduce", .sequence = 9, .site = site("main", "all_reduce")})
      .stack({0, 2}, in("all_gather",
                        at("Window." + function, "all_gather") + " | " + at("main", "evaluate()")))
      .stack(1, in("all_reduce", at("main", "all_reduce")));
  return builder.build();
}

TEST(Finalizer, ThatMakesACallIsToldAsOne) {
  const Findings findings = asked("divergent-branch", of_finalizer("__del__"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("when it frees the object"), std::string::npos);
  EXPECT_TRUE(asked("divergent-branch", of_finalizer("close")).empty());
  EXPECT_EQ(asked("mismatched-op", of_finalizer("close")).size(), 1U);
}

TEST(Finalizer, IsToldFromStacksAlone) {
  JobBuilder builder = job();
  builder.ranks(3)
      .stack(kAll, in("barrier", "py:Block.__del__@/srv/shared.py:9 | py:main@/srv/train.py:18"))
      .stack(0, in("broadcast", "py:main@/srv/train.py:19"));
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(1).line, 9);
}

}  // namespace
}  // namespace ddpdoctor::detectors
