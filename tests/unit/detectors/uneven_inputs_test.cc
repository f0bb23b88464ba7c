// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def evaluate(model):
    dist.all_reduce(correct)

def main():
    for epoch in range(10):
        for batch in shard(data, rank, world):
            model(batch).sum().backward()
        evaluate(model)
)";

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, kSource)
      .history(kAll, 1, 20, "all_reduce", site("main", "backward"));
  builder.all_reduce(0, 21, 5, site("main", "backward"));
  builder.all_reduce(1, 21, 1,
                     site("evaluate", "all_reduce") + " | " + site("main", "    evaluate(model)"));
  builder.stack(0, in_backward(at("main", "backward")));
  builder.stack(1, in("all_reduce",
                      at("evaluate", "all_reduce") + " | " + at("main", "    evaluate(model)")));
  return builder;
}

TEST(UnevenInputs, SeesTheLoopOfACallThatAnotherOneIsChainedTo) {
  constexpr std::string_view kChained = R"(
def fit():
    for batch in loader:
        loss(batch).backward()

def save():
    dist.barrier()

def main():
    trainer.fit().save()
)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kChained)
      .stack(kAll, in_backward(at("fit", "backward") + " | " + at("main", "trainer.fit()")))
      .stack(2, in("barrier", at("save", "barrier") + " | " + at("main", "trainer.fit()")));
  const Findings findings = asked("uneven-inputs", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_TRUE(asked("unused-parameters", builder.build()).empty());
}

TEST(UnevenInputs, NamesTheShortRankWhereItLeftTheLoop) {
  const Findings findings = asked("uneven-inputs", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 8);
  EXPECT_EQ(findings[0].locations.back().line, 6);
}

TEST(UnevenInputs, WorksFromStacksAlone) {
  model::JobModel stacks_only = told().build();
  stacks_only.collectives.clear();
  const Findings findings = asked("uneven-inputs", stacks_only);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

TEST(UnevenInputs, SeesALoopThatLiesInAFunction) {
  constexpr const char* kFunction = R"(
def train(rank):
    for batch in batches(rank):
        dist.all_reduce(total)

def work(rank):
    while True:
        train(rank)
        dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kFunction);
  builder.stack({0, 1}, in("all_reduce",
                           at("train", "all_reduce") + " | " + at("work", "        train(rank)")));
  builder.stack({2, 3}, in("barrier", at("work", "barrier")));
  const Findings findings = asked("uneven-inputs", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2, 3}));
  EXPECT_EQ(findings[0].locations.at(0).line, 8);
}

TEST(UnevenInputs, LooksForTheLoopOverBatchesInEpochsThatAllGoThrough) {
  constexpr std::string_view kEpochs = R"(
def train():
    for batch in loader:
        loss(batch).backward()

def main():
    for epoch in range(3):
        train()
    dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kEpochs)
      .stack(kAll, in_backward(at("train", "backward") + " | " + at("main", "    train()")))
      .stack(2, in("barrier", at("main", "dist.barrier")));
  const Findings findings = asked("uneven-inputs", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_NE(findings[0].summary.find("for batch in loader"), std::string::npos);
}

TEST(UnevenInputs, IsSilentWhileTheJobMovesOrAllAreInTheLoop) {
  model::JobModel running = told().build();
  running.collectives.clear();
  EXPECT_TRUE(asked("uneven-inputs", moving(running)).empty());
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kSource).stack(kAll, in_backward(at("main", "backward")));
  EXPECT_TRUE(asked("uneven-inputs", builder.build()).empty());
}

TEST(UnevenInputs, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kSource).stack(0, in_backward(at("main", "backward")));
  builder
      .stack(1, in("all_reduce",
                   at("evaluate", "all_reduce") + " | " + at("main", "    evaluate(model)")))
      .unobserved(2);
  EXPECT_TRUE(nothing_likely(asked("uneven-inputs", builder.build())));
}

TEST(UnevenInputs, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("uneven-inputs", told().build())),
            essence(asked("uneven-inputs", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
