// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def reduce_losses(losses):
    for name in sorted(losses):
        dist.all_reduce(losses[name])

def main():
    for step in range(100):
        reduce_losses(losses)
        dist.barrier()
)";

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kSource).stack(kAll, in("barrier", at("main", "barrier")));
  builder.stack(1, in("all_reduce", at("reduce_losses", "all_reduce") + " | " +
                                        at("main", "    reduce_losses(losses)")));
  return builder;
}

TEST(CollectiveCount, NamesTheRankWithOneKeyMore) {
  const Findings findings = asked("collective-count", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
}

TEST(CollectiveCount, KnowsAListThatWasCollectedJustAbove) {
  constexpr const char* kWorks = R"(
def sync(model):
    works = []
    for p in model.parameters():
        works.append(p)
    for w in works:
        dist.all_reduce(w)

def main():
    for step in range(100):
        sync(model)
        dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kWorks).stack(kAll, in("barrier", at("main", "barrier")));
  builder.stack(
      1, in("all_reduce", at("sync", "dist.all_reduce") + " | " + at("main", "    sync(model)")));
  ASSERT_EQ(asked("collective-count", builder.build()).size(), 1U);
  EXPECT_TRUE(asked("uneven-inputs", builder.build()).empty());
}

TEST(CollectiveCount, LeavesLoopsOverBatchesToUnevenInputs) {
  JobBuilder builder = job();
  builder.ranks(3).source(
      kTrain,
      "def main():\n    for batch in loader:\n        dist.all_reduce(x)\n    dist.barrier()\n");
  builder.stack({0, 1}, in("all_reduce", at("main", "all_reduce")))
      .stack(2, in("barrier", at("main", "barrier")));
  EXPECT_TRUE(asked("collective-count", builder.build()).empty());
  EXPECT_EQ(asked("uneven-inputs", builder.build()).size(), 1U);
}

// All go round the loop of steps equally often: who waits in it made a call more in some step.
JobBuilder filtered(const std::string& bound) {
  const std::string text = R"(
STEPS = 300
def average(model):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)

def main():
    for step in range()" + bound +
                           R"():
        average(model)
    dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, text).stack(kAll, in("barrier", at("main", "dist.barrier")));
  builder.stack(1, in("all_reduce",
                      at("average", "dist.all_reduce") + " | " + at("main", "    average(model)")));
  return builder;
}

TEST(CollectiveCount, IsWhatDiffersInALoopThatAllGoRoundEquallyOften) {
  for (const char* bound : {"300", "0, 300", "STEPS"}) {
    const model::JobModel told = filtered(bound).build();
    const Findings findings = asked("collective-count", told);
    ASSERT_EQ(findings.size(), 1U) << bound;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
    EXPECT_EQ(findings[0].locations.at(0).function, "average");
    EXPECT_TRUE(asked("uneven-inputs", told).empty()) << bound;
  }
}

TEST(CollectiveCount, IsNotSaidOfALoopWhoseLengthEachRankDecides) {
  EXPECT_TRUE(asked("collective-count", filtered("len(batches)").build()).empty());
  EXPECT_EQ(asked("uneven-inputs", filtered("len(batches)").build()).size(), 1U);
}

TEST(CollectiveCount, IsSilentOnTheHealthyTwin) {
  JobBuilder builder = told();
  builder.stack(1, in("barrier", at("main", "barrier")));
  EXPECT_TRUE(asked("collective-count", builder.build()).empty());
  EXPECT_TRUE(asked("collective-count", moving(told().build())).empty());
}

TEST(CollectiveCount, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = told();
  builder.unobserved(0);
  EXPECT_TRUE(nothing_likely(asked("collective-count", builder.build())));
}

TEST(CollectiveCount, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("collective-count", told().build())),
            essence(asked("collective-count", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
