// SPDX-License-Identifier: Apache-2.0
// Ranks that left a loop for another reason than the end of their data.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kStopping =
    "class Stop:\n  async def __call__(self, value):\n    self.bad += value > self.best\n"
    "    if self.bad >= self.patience:\n      raise errors.StopNow(value)\n";

std::string fitting(const std::string& clause) {
  return "def fit(stop):\n  for epoch in range(9):\n    for x in loader:\n      "
         "step(x).backward()\n"
         "    stop(val)\n\ndef main():\n  try:\n    fit(Stop())\n  except " +
         clause + ":\n    log(1)\n  dist.barrier()\n";
}

/// Rank 0 is after the try, the others in the next step; `raising` is the module of the exception.
JobBuilder told(const std::string& clause, const std::string& raising) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, fitting(clause))
      .source("/srv/early.py", raising)
      .source("/srv/errors.py", "class StopNow(Exception):\n  pass\n")
      .stack(kAll, in_backward(at("fit", "backward") + " | " + at("main", "fit(Stop())")))
      .stack(0, in("barrier", at("main", "barrier")));
  return builder;
}

TEST(OtherWaysOut, AreTheTestThatRaisesAnExceptionOfTheProgram) {
  for (const char* clause : {"StopNow", "errors.StopNow as e", "(KeyboardInterrupt, StopNow)"}) {
    const Findings findings = asked("divergent-branch", told(clause, kStopping).build());
    ASSERT_EQ(findings.size(), 1U) << clause;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{0})) << clause;
    EXPECT_EQ(findings[0].confidence, Confidence::kLikely) << clause;
    EXPECT_NE(findings[0].summary.find("`self.bad >= self.patience`"), std::string::npos);
  }
}

TEST(OtherWaysOut, AreNoneWhereNothingOfTheProgramIsRaisedUnderATest) {
  for (const auto& [clause, raising] : std::vector<std::pair<const char*, std::string>>{
           {"RuntimeError", kStopping},
           {"StopNow", "x = 1\n"},
           {"StopNow", "def f():\n  raise StopNow()\n"},
           {"StopNow", "def f():\n  for i in range(9):\n    if i > 7:\n      raise StopNow()\n"}}) {
    const model::JobModel job = told(clause, raising).build();
    EXPECT_TRUE(asked("divergent-branch", job).empty()) << clause << raising;
    EXPECT_EQ(asked("uneven-inputs", job).size(), 1U) << clause << raising;
  }
}

TEST(OtherWaysOut, AreATryWhereASamplerGivesAllEquallyManyBatches) {
  for (const char* sampler : {"DataLoader with DistributedSampler", "DataLoader"}) {
    model::JobModel job = told("RuntimeError", "").build();
    for (const model::Rank rank : {1, 2}) {
      put_loops(job, rank, "fit", {over("range", 1, 9), over(sampler, 12, 20)});
    }
    const bool equal = std::string_view(sampler).ends_with("DistributedSampler");
    EXPECT_EQ(asked("divergent-branch", job).size(), equal ? 1U : 0U);
    EXPECT_EQ(asked("uneven-inputs", job).size(), equal ? 0U : 1U);
  }
}

TEST(OtherWaysOut, AreAnExceptClauseThatGoesOnWithTheNextRound) {
  const auto skipping = [](const std::string& clause, const std::string& then) {
    return "def main():\n  for x in loader:\n    try:\n      x = augment(x)\n    except " + clause +
           ":\n      log(x)\n      " + then + "\n    step(x).backward()\n  dist.barrier()\n";
  };
  const auto told_of = [](const std::string& source, const char* sampler) {
    JobBuilder builder = job();
    builder.ranks(3)
        .source(kTrain, source)
        .stack(kAll, in_backward(at("main", "backward")))
        .stack(1, in("barrier", at("main", "barrier")));
    model::JobModel told = builder.build();
    put_loops(told, 0, "main", {over(sampler, 14, 15)});
    put_loops(told, 2, "main", {over(sampler, 14, 15)});
    return told;
  };
  for (const char* sampler : {"DataLoader with DistributedSampler", "list"}) {
    const Findings findings =
        asked("divergent-branch", told_of(skipping("SkipBatch as e", "continue"), sampler));
    ASSERT_EQ(findings.size(), 1U) << sampler;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
    EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
    EXPECT_EQ(findings[0].locations.back().line, 5);
    EXPECT_EQ(findings[0].fix.find("different numbers of batches") != std::string::npos,
              std::string_view(sampler) == "list");
  }
  for (const auto& [clause, then] : std::vector<std::pair<const char*, const char*>>{
           {"SkipBatch", "raise"}, {"SkipBatch", "x = None"}, {"StopIteration", "continue"}}) {
    const model::JobModel job = told_of(skipping(clause, then), "list");
    EXPECT_TRUE(asked("divergent-branch", job).empty()) << clause << then;
    EXPECT_EQ(asked("uneven-inputs", job).size(), 1U) << clause << then;
  }
}

// A loop over epochs around one over batches, left because of a check: rank 0 is in batch `step` of
// an epoch.
model::JobModel plateau(std::int64_t step, const char* sampler, const char* left) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, std::string("def fit(rate):\n  for epoch in range(9):\n    for x in loader:\n"
                                  "      step(x).backward()\n    rate.after(epoch)\n") +
                          left + "def main():\n  fit(rate)\n  dist.barrier()\n")
      .stack(0, in_backward(at("fit", "backward") + " | " + at("main", "  fit(rate)")))
      .stack(1, in("barrier", at("main", "barrier")));
  model::JobModel told = builder.build();
  put_loops(told, 0, "fit", {over("range", 4, 9), over(sampler, step, 8)});
  return told;
}

TEST(OtherWaysOut, AreTheTestOfTheLoopAroundTheOneThatWasBegunAnew) {
  constexpr const char* kTest = "    if rate.exhausted:\n      break\n";
  constexpr const char* kEqual = "DataLoader with DistributedSampler";
  for (const char* sampler : {kEqual, "DataLoader"}) {
    const Findings findings = asked("divergent-branch", plateau(1, sampler, kTest));
    ASSERT_EQ(findings.size(), 1U) << sampler;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
    EXPECT_EQ(findings[0].locations.back().line, 6);
    EXPECT_EQ(findings[0].fix.find("different numbers of batches") == std::string::npos,
              std::string_view(sampler) == kEqual);
  }
  EXPECT_EQ(asked("uneven-inputs", plateau(3, "DataLoader", kTest)).size(), 1U);
  EXPECT_EQ(asked("uneven-inputs", plateau(1, "DataLoader", "")).size(), 1U);
}

// DDP's hook makes the calls of backward on a thread of autograd: rank 0 of two waits for one, rank
// 1 is after the loop.
TEST(OtherWaysOut, AreAHookThatLeavesABucketOut) {
  const auto told = [](const std::string& test, const std::string& from) {
    JobBuilder builder = job();
    builder.ranks(2)
        .source(kTrain,
                "def main():\n  for x in corpus(rank):\n    step(x).backward()\n"
                "  dist.barrier()\n\ndef reduce(state, bucket):\n  " +
                    test + "\n    return done\n  dist.all_reduce(bucket)\n")
        .history(kAll, 1, 6, "all_reduce", site("reduce", "dist.all_reduce"))
        .call(0, {.operation = "all_reduce", .sequence = 7, .site = from})
        .call(1, {.operation = "barrier", .sequence = 7, .site = site("main", "barrier")})
        .stack(0, in_backward(at("main", "backward")))
        .stack(1, in("barrier", at("main", "barrier")));
    return builder.build();
  };
  const std::string hook = site("reduce", "dist.all_reduce");
  const model::JobModel own = told("if bucket.abs().max() < least:", hook);
  const Findings findings = asked("divergent-branch", own);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.back().line, 7);
  EXPECT_TRUE(asked("uneven-inputs", own).empty());
  EXPECT_EQ(asked("uneven-inputs", told("if state.n % every:", hook)).size(), 1U);
  const model::JobModel plain = told("if bucket.abs().max() < least:", site("main", "backward"));
  EXPECT_EQ(asked("uneven-inputs", plain).size(), 1U);
}

const std::string kEvaluating =
    "class Evaluator:\n  def __init__(self, acc):\n    self.run = WRAPPED\n"
    "  def _run(self):\n    for x in self.loader:\n      dist.all_gather(net(x))\n\n"
    "def main():\n  for x in loader:\n    step(x).backward()\n    evaluator.run()\n";

/// Rank 0 evaluates for the first time, rank 1 is in the next step. `before`: rank 1 has done so.
model::JobModel evaluating(const std::string& wrapped, bool before) {
  std::string source = kEvaluating;
  source.replace(source.find("WRAPPED"), 7, wrapped);
  const std::string call =
      site("Evaluator._run", "all_gather") + " | " + site("main", "evaluator.run");
  const std::string step = site("main", "backward");
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, source)
      .history(kAll, 1, 2, "all_reduce", step)
      .history(kAll, 3, 3, before ? "all_gather" : "all_reduce", before ? call : step)
      .history(kAll, 4, 6, "all_reduce", step)
      .call(0, {.operation = "all_gather", .sequence = 7, .site = call})
      .call(1, {.operation = "all_reduce", .sequence = 7, .site = step});
  builder.stack(0, in("all_gather",
                      at("Evaluator._run", "all_gather") + " | " + at("main", "evaluator.run")));
  builder.stack(1, in_backward(at("main", "backward")));
  return builder.build();
}

TEST(OtherWaysOut, AreNoneForWhoNeverEnteredTheLoop) {
  EXPECT_TRUE(asked("uneven-inputs", evaluating("self._run", false)).empty());
  EXPECT_EQ(asked("uneven-inputs", evaluating("self._run", true)).size(), 1U);
}

TEST(OtherWaysOut, OfAFunctionAreWhatLetsSingleRanksIntoIt) {
  for (const char* wrapped :
       {"acc.on_local_main_process(self._run)", "acc.on_process(self._run, process_index=2)",
        "rank_zero_only(_run)"}) {
    const Findings findings = asked("rank-conditional-collective", evaluating(wrapped, false));
    ASSERT_EQ(findings.size(), 1U) << wrapped;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{0})) << wrapped;
    EXPECT_EQ(findings[0].locations.back().line, 3) << wrapped;
  }
  for (const char* other : {"torch.compile(self._run)", "acc.on_main_process(self._save)",
                            "acc.on_main_process(self._run())"}) {
    EXPECT_TRUE(asked("rank-conditional-collective", evaluating(other, false)).empty()) << other;
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
