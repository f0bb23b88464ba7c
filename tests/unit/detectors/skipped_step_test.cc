// SPDX-License-Identifier: Apache-2.0
// A step that one rank skipped before it continued: `continue` because of its data, an exception
// caught.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// A loop whose backward one rank skips; `body` is the body of the loop, indented by four blanks.
std::string training(const std::string& body) {
  return "class Net(nn.Module):\n  def forward(self, x):\n    if len(x) > 9:\n"
         "      raise RuntimeError('too long')\n    return self.f(x)\ndef main():\n"
         "  for i, x in enumerate(loader):\n" +
         body + "    if i % 10 == 9:\n      dist.all_gather_object(seen, i)\n";
}

const std::string kCatches = training(
    "    try:\n      net(x).backward()\n    except RuntimeError as e:\n"
    "      if not is_oom(e):\n        raise\n      continue\n");
const std::string kSkips = training("    if x is None:\n      continue\n    net(x).backward()\n");

/// Rank 1 is at the gather, the others in backward.
JobBuilder told(const std::string& source) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, source)
      .stack(kAll, in_backward(at("main", "backward")))
      .stack(1, in("all_gather_object", at("main", "all_gather_object")));
  return builder;
}

JobBuilder with_reducers(JobBuilder builder, std::int64_t of_rank_1) {
  for (const model::Rank rank : {0, 1, 2}) {
    builder.fact("reducer",
                 {{"backward", rank == 1 ? of_rank_1 : std::int64_t{8}},
                  {"finalized", rank == 1 ? of_rank_1 : std::int64_t{7}},
                  {"not_ready", std::vector<std::string>{}}},
                 rank);
  }
  return builder;
}

TEST(SkippedStep, IsLikelyWhereAnExceptGoesOnPastTheBackward) {
  const model::JobModel job = told(kCatches).build();
  const Findings findings = asked("divergent-branch", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("`except RuntimeError as e`"), std::string::npos);
  EXPECT_EQ(findings[0].locations.back().line, 10);
  EXPECT_TRUE(asked("unused-parameters", job).empty());
}

TEST(SkippedStep, IsCertainWhereTheReducersCount) {
  const auto ranked =
      told(kCatches)
          .history(kAll, 1, 7, "all_reduce", site("main", "backward"))
          .call({0, 2},
                {.operation = "all_reduce", .sequence = 8, .site = site("main", "backward")})
          .call(1, {.operation = "all_gather",
                    .sequence = 8,
                    .site = site("main", "all_gather_object")});
  const Findings findings = asked("divergent-branch", with_reducers(ranked, 7).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_TRUE(asked("mismatched-op", with_reducers(ranked, 7).build()).empty());
  EXPECT_TRUE(asked("divergent-branch", with_reducers(ranked, 8).build()).empty());
}

TEST(SkippedStep, IsAContinueOnWhatTheRoundReads) {
  const Findings findings = asked("divergent-branch", told(kSkips).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("`x is None`"), std::string::npos);
  EXPECT_EQ(findings[0].locations.back().line, 8);
}

TEST(SkippedStep, TurnsATieToTheRankThatIsNotInBackward) {
  for (const model::Rank odd : {0, 1}) {
    JobBuilder builder = job();
    builder.ranks(2)
        .source(kTrain, kCatches)
        .stack(kAll, in_backward(at("main", "backward")))
        .stack(odd, in("all_gather_object", at("main", "all_gather_object")));
    const Findings findings = asked("divergent-branch", builder.build());
    ASSERT_EQ(findings.size(), 1U) << odd;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{odd}));
  }
}

TEST(SkippedStep, IsAnExceptInAFunctionThatOnlyTheOthersAreIn) {
  constexpr const char* kBelow = R"(
def step(x):
    try:
        dist.all_reduce(x)
    except ValueError:
        log.warning("left out")

def main():
    step(x)
    dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kBelow)
      .stack(kAll, in("all_reduce", at("step", "all_reduce") + " | " + at("main", "    step(x)")))
      .stack(1, in("barrier", at("main", "barrier")));
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

/// A step in a function of its own, which returns early depending on the result of a helper.
std::string by_helper(const std::string& clause, const std::string& test = "loss is None") {
  return "class Step:\n  def loss(self, x):\n    try:\n      return self.f(x)\n" + clause +
         "  def __call__(self, x):\n    loss = self.loss(x)\n    if " + test +
         ":\n"
         "      return\n    loss.backward()\n\ndef main():\n  for i, x in enumerate(stream):\n"
         "    step(x)\n    if i % 10 == 9:\n      dist.all_gather_object(seen, i)\n";
}

JobBuilder told_by_helper(const std::string& clause, const std::string& test = "loss is None") {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, by_helper(clause, test))
      .stack(1, in_backward(at("Step.__call__", "backward") + " | " + at("main", "    step(x)")))
      .stack(0, in("all_gather_object", at("main", "all_gather_object")));
  return builder;
}

TEST(SkippedStep, IsAnExceptInAHelperHoweverItsAnswerIsAsked) {
  for (const char* test : {"loss is False", "loss == 0", "not loss", "self.failed(loss)"}) {
    const Findings findings =
        asked("divergent-branch", told_by_helper("    except ValueError as e:\n      return False\n"
                                                 "  def failed(self, y):\n    return y is False\n",
                                                 test)
                                      .build());
    ASSERT_EQ(findings.size(), 1U) << test;
    EXPECT_EQ(findings[0].locations.back().line, 5) << test;
  }
}

TEST(SkippedStep, IsAnExceptInAHelperThatAnswersNone) {
  const Findings findings =
      asked("divergent-branch",
            told_by_helper("    except ValueError as e:\n      return None\n").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.back().line, 5);
  EXPECT_NE(findings[0].summary.find("`except ValueError as e`"), std::string::npos);
}

TEST(SkippedStep, IsNoExceptInAHelperThatAnswersOtherwiseOrRaises) {
  for (const std::string clause : {"    except ValueError:\n      return 0 * x.sum()\n",
                                   "    except ValueError:\n      raise\n"}) {
    EXPECT_TRUE(asked("divergent-branch", told_by_helper(clause).build()).empty()) << clause;
  }
}

TEST(SkippedStep, IsNoTryThatSwallowsNothingAndNoTestOfACounter) {
  const std::string raises = training(
      "    try:\n      net(x).backward()\n    except RuntimeError as e:\n      log(e)\n"
      "      raise\n");
  const std::string around =
      "def main():\n  try:\n    for x in loader:\n      net(x).backward()\n"
      "      dist.all_gather_object(seen, 1)\n  except RuntimeError:\n    pass\n";
  const std::string counter =
      training("    if i < warmup:\n      continue\n    net(x).backward()\n");
  for (const std::string& source : {raises, around, counter}) {
    EXPECT_TRUE(asked("divergent-branch", told(source).build()).empty()) << source;
    EXPECT_EQ(asked("unused-parameters", told(source).build()).size(), 1U) << source;
  }
}

TEST(SkippedStep, LeavesABranchOfTheModelItsWordButNotItsCertainty) {
  std::string source = kSkips;
  source.replace(source.find("raise RuntimeError('too long')"), 30, "x = self.extra(x)");
  const Findings findings = asked("unused-parameters", told(source).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_LE(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].fix.find("run the step that rank"), std::string::npos);
  EXPECT_TRUE(asked("divergent-branch", told(source).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
