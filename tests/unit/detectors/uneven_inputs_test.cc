// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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

/// Rank 1 of two has left the loop of this script, which is under the check of __name__.
Findings of_script(const std::string& loop, const char* kind) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, "def save():\n    dist.barrier()\n\nif __name__ == \"__main__\":\n" + loop +
                          "    save()\n")
      .stack(0, in("all_reduce", at("<module>", "all_reduce")))
      .stack(1, in("barrier", at("save", "barrier") + " | " + at("<module>", "    save()")));
  return asked(kind, builder.build());
}

TEST(UnevenInputs, KnowsLoopsThatAskForTheirDataInTheirBody) {
  const std::string caught =
      "    while True:\n        try:\n            x = next(stream)\n"
      "        except StopIteration:\n            break\n        dist.all_reduce(f(x))\n";
  const std::string walrus =
      "    while (x := next(it, None)) is not None:\n        dist.all_reduce(f(x))\n";
  const std::string flag =
      "    done = False\n    while not done:\n        try:\n            x = next(it)\n"
      "            dist.all_reduce(f(x))\n        except StopIteration:\n"
      "            done = True\n";
  const std::string sentinel =
      "    while True:\n        x = q.get()\n        if x is END:\n            break\n"
      "        dist.all_reduce(f(x))\n";
  for (const std::string& loop : {caught, walrus, flag, sentinel}) {
    const Findings findings = of_script(loop, "uneven-inputs");
    ASSERT_EQ(findings.size(), 1U) << loop;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{1})) << loop;
    EXPECT_TRUE(of_script(loop, "divergent-branch").empty()) << loop;
  }
  EXPECT_NE(of_script(caught, "uneven-inputs")[0].summary.find("`while True: x = next(stream)`"),
            std::string::npos);
}

TEST(UnevenInputs, LeavesAConditionThatDataDecidesToDivergentBranch) {
  const std::string converged =
      "    while (loss := step(next(it))) > 0.1:\n        dist.all_reduce(loss)\n";
  EXPECT_EQ(of_script(converged, "divergent-branch").size(), 1U);
  EXPECT_TRUE(of_script(converged, "uneven-inputs").empty());
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

constexpr std::string_view kLoader = "DataLoader with Strided";

TEST(UnevenInputs, TellsWhichLoaderTheOthersAreIn) {
  model::JobModel told_job = told().build();
  put_loops(told_job, 0, "main", {over("range", 1, 10), over(kLoader, 21, 21)});
  const Findings findings = asked("uneven-inputs", told_job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(std::any_of(
      findings[0].evidence.begin(), findings[0].evidence.end(), [](const Evidence& one) {
        return one.text == "rank 0 is in step 21 of 21 (DataLoader with Strided)";
      }));
}

constexpr const char* kAhead = R"(
def evaluate(model):
    dist.all_reduce(correct)

def main():
    for epoch in range(10):
        for batch in loader:
            loss(batch)
            model(batch).sum().backward()
            pause()
        evaluate(model)
)";

/// Two ranks in training, with one step less on rank 1.
struct Ahead {
  std::string source = kAhead;
  std::string stack = in_backward(at("main", "backward"));
  std::vector<model::Iteration> first = {over("range", 1, 10), over(kLoader, 5, 21)};
  std::vector<model::Iteration> second = {over("range", 1, 10), over(kLoader, 6, 20)};

  [[nodiscard]] model::JobModel build() const {
    JobBuilder builder = job();
    builder.ranks(2).source(kTrain, source).stack(kAll, stack);
    model::JobModel out = moving(builder.build());
    put_loops(out, 0, "main", first);
    put_loops(out, 1, "main", second);
    return out;
  }
  [[nodiscard]] Findings findings() const {
    return asked("uneven-inputs", build());
  }
};

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  return text.replace(text.find(old), old.size(), by);
}

TEST(UnevenInputs, OfALengthThatOneLookAloneShowsAreNotTold) {
  model::JobModel told = Ahead{}.build();
  ASSERT_EQ(told.observations.size(), 2U);
  EXPECT_EQ(asked("uneven-inputs", told).size(), 1U);
  model::JobModel once = told;
  once.observations.erase(once.observations.begin());
  EXPECT_TRUE(asked("uneven-inputs", once).empty());
  // In the earlier snapshot it is longer, or even shorter.
  for (const int length : {21, 19}) {
    Ahead other;
    other.second = {over("range", 1, 10), over(kLoader, 6, length)};
    model::JobModel differs = told;
    differs.observations.front() = other.build().observations.front();
    EXPECT_TRUE(asked("uneven-inputs", differs).empty()) << length;
  }
}

TEST(UnevenInputs, AreToldWhileTheJobStillTrains) {
  const Findings findings = Ahead{}.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].ahead);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 6);
  EXPECT_NE(findings[0].summary.find("rank 1 has 20 steps in `for batch in loader`"),
            std::string::npos);
  EXPECT_EQ(findings[0].evidence.front().text,
            "rank 0 is in step 5 of 21 (DataLoader with Strided)");
  // No value of the loop was read: its iterators are.
  const auto& outcomes = findings[0].locations.at(0).outcomes;
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].value, "iteration 5 of 21");
  EXPECT_EQ(outcomes[1].value, "iteration 6 of 20");
}

TEST(UnevenInputs, AreOfTheLoopAroundTheOneOverAModelsParameters) {
  constexpr std::string_view kManual = R"(
def learn(batch):
    for p in net.parameters():
        dist.all_reduce(p.grad)

async def consume():
    async for batch in batched(events, 10):
        learn(batch)

async def main():
    await consume()
    dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kManual)
      .stack(kAll, in("all_reduce", at("learn", "all_reduce") + " | " +
                                        at("consume", "        learn(batch)") + " | " +
                                        at("main", "    await consume()")))
      .stack(0, in("barrier", at("main", "    dist.barrier()")));
  const Findings findings = asked("uneven-inputs", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{0});
  EXPECT_NE(findings[0].summary.find("async for batch in batched"), std::string::npos);
}

TEST(UnevenInputs, AreToldFromTheRecordsOfEarlierSteps) {
  Ahead told_of;
  told_of.stack = at("main", "pause");
  EXPECT_TRUE(told_of.findings().empty());
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, kAhead)
      .stack(kAll, at("main", "pause"))
      .history(kAll, 1, 5, "all_reduce", site("main", "backward"));
  model::JobModel told_job = moving(builder.build());
  put_loops(told_job, 0, "main", told_of.first);
  put_loops(told_job, 1, "main", told_of.second);
  EXPECT_EQ(asked("uneven-inputs", told_job).size(), 1U);
}

TEST(UnevenInputs, OfEqualLengthOrUnknownOrOfAnotherEpochTellNothing) {
  Ahead equal;
  equal.second = {over("range", 1, 10), over(kLoader, 6, 21)};
  EXPECT_TRUE(equal.findings().empty());
  Ahead unknown;
  unknown.second[1].left.reset();
  EXPECT_TRUE(unknown.findings().empty());
  Ahead loose;
  loose.second[1].loose = true;
  EXPECT_TRUE(loose.findings().empty());
  Ahead epochs;
  epochs.second[0] = over("range", 2, 10);
  EXPECT_TRUE(epochs.findings().empty());
  Ahead files;  // the sum of their parts may be the same
  files.first[0] = files.second[0] = over("list", 1, 10);
  EXPECT_TRUE(files.findings().empty());
  Ahead apart;
  apart.second[1] = over(kLoader, 19, 20);
  EXPECT_TRUE(apart.findings().empty());
}

TEST(UnevenInputs, AreNothingWhereTheSourceTakesCareOfThem) {
  const auto with = [](const std::string& old, const std::string& by) {
    Ahead told_of;
    told_of.source = replaced(told_of.source, old, by);
    return told_of.findings();
  };
  EXPECT_EQ(with("            pause()\n", "            if loss.isnan(): break\n").size(), 1U);
  EXPECT_TRUE(with("            loss(batch)\n", "            if step == limit: break\n").empty());
  EXPECT_TRUE(
      with("            loss(batch)\n", "            if len(batch) < 4: continue\n").empty());
  EXPECT_TRUE(
      with("            model(batch)", "            if step % 4 == 0: model(batch)").empty());
  EXPECT_TRUE(
      with("            model(batch)", "            with model.no_sync(): model(batch)").empty());
  EXPECT_TRUE(with("        for batch", "        with Join([model]):\n         for batch").empty());
  EXPECT_TRUE(with("        evaluate(model)\n",
                   "        for _ in range(missing):\n            evaluate(model)\n")
                  .empty());
  EXPECT_TRUE(with("for batch in loader", "while batch in loader").empty());
}

TEST(UnevenInputs, OfRanksThatShareNoGroupTellNothing) {
  JobBuilder builder = job();
  builder.ranks(2).group("1", {0}).source(kTrain, kAhead).stack(kAll, at("main", "pause"));
  for (int i = 1; i < 5; ++i) {
    builder.call(
        0,
        {.operation = "all_reduce", .sequence = i, .group = "1", .site = site("main", "backward")});
  }
  model::JobModel told_job = moving(builder.build());
  put_loops(told_job, 0, "main", Ahead{}.first);
  put_loops(told_job, 1, "main", Ahead{}.second);
  EXPECT_TRUE(asked("uneven-inputs", told_job).empty());
}

TEST(UnevenInputs, AreToldWhileAJobMovesOnly) {
  model::JobModel still = Ahead{}.build();
  still.progress = model::Progress::kStill;
  EXPECT_TRUE(asked("uneven-inputs", still).empty());
}

TEST(UnevenInputs, AreLikelyOnlyWhereTheOthersAreInTheirLastRound) {
  model::JobModel last = told().build();
  put_loops(last, 0, "main", {over("range", 1, 10), over(kLoader, 21, 21)});
  const Findings doubted = asked("uneven-inputs", last);
  ASSERT_EQ(doubted.size(), 1U);
  EXPECT_EQ(doubted[0].confidence, Confidence::kLikely);
  EXPECT_NE(doubted[0].fix.find("find_unused_parameters"), std::string::npos);
  model::JobModel inside = told().build();
  put_loops(inside, 0, "main", {over("range", 1, 10), over(kLoader, 20, 24)});
  EXPECT_EQ(asked("uneven-inputs", inside).at(0).confidence, Confidence::kCertain);
}

}  // namespace
}  // namespace ddpdoctor::detectors
