// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <csignal>

#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def prepare(folder):
    cache = os.path.join(folder, "cache.bin")
    if not os.path.exists(cache):
        dist.all_gather(counts, mine)

def main():
    prepare(folder)
    while True:
        dist.broadcast(weights, src=0)
)";

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kSource).stack(kAll, in("broadcast", at("main", "broadcast")));
  builder.stack(
      2, in("all_gather", at("prepare", "all_gather") + " | " + at("main", "prepare(folder)")));
  return builder;
}

TEST(DivergentBranch, NamesTheRankWhoseFileTestCameOutDifferently) {
  const Findings findings = asked("divergent-branch", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
  EXPECT_NE(findings[0].summary.find("os.path.exists"), std::string::npos);
}

struct Decider {
  const char* setting;
  const char* condition;
  const char* expected;
  const char* word;  // in the fix
};

void PrintTo(const Decider& one, std::ostream* out) {
  *out << one.condition;
}

class DivergentBranchBy : public testing::TestWithParam<Decider> {};

TEST_P(DivergentBranchBy, NamesWhatOfTheRanksOwnDecides) {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, std::string(GetParam().setting) +
                                      "\ndef main():\n    while True:\n        "
                                      "dist.broadcast(weights, src=0)\n        if " +
                                      GetParam().condition +
                                      ":\n            dist.all_gather(a, b)\n");
  builder.stack(kAll, in("broadcast", at("main", "broadcast")));
  builder.stack(2, in("all_gather", at("main", "all_gather")));
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(std::get<std::string>(findings[0].details.at("decided_by")), GetParam().expected);
  EXPECT_NE(findings[0].fix.find(GetParam().word), std::string::npos) << findings[0].fix;
}

INSTANTIATE_TEST_SUITE_P(
    Own, DivergentBranchBy,
    testing::Values(
        Decider{"import time\nt = time.time()", "time.time() - t > 60", "clock", "own clock"},
        Decider{"import random", "random.random() < 0.01", "random state", "own random state"},
        Decider{"import os", "os.path.exists('x')", "file system", "file system"},
        Decider{"import queue\nq = queue.Queue()", "not q.empty()", "queue", "own queue"},
        Decider{"import diskcache\nc = diskcache.Cache('x')", "c.get('k') is None", "cache",
                "own cache"},
        Decider{"bad = False\ndef f():\n    global bad\n    try:\n        g()\n    except "
                "OSError:\n        bad = True\n",
                "bad", "exception", "had the exception"},
        Decider{"", "loss.item() > 3", "data", "Decide once"}));

TEST(DivergentBranch, NamesNothingOfItsOwnAfterAVariablesName) {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain,
                          "def main():\n    while True:\n        dist.broadcast(weights, src=0)\n"
                          "        if clock_queue_cache:\n            dist.all_gather(a, b)\n");
  builder.stack(kAll, in("broadcast", at("main", "broadcast")));
  builder.stack(2, in("all_gather", at("main", "all_gather")));
  for (const Finding& finding : asked("divergent-branch", builder.build())) {
    EXPECT_FALSE(finding.details.contains("decided_by"));
    EXPECT_EQ(finding.fix.find("own clock"), std::string::npos);
  }
}

TEST(DivergentBranch, SeesAConditionAroundALoopThatOneRankDidNotEnter) {
  constexpr const char* kGuarded = R"(
def step(params):
    if not found_inf:
        for p in params:
            dist.all_reduce(p.grad)

def main():
    for batch in loader:
        step(params)
        dist.all_gather(names, mine)
)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kGuarded)
      .history(kAll, 1, 40, "all_reduce", site("step", "all_reduce"))
      .stack(kAll,
             in("all_reduce", at("step", "all_reduce") + " | " + at("main", "  step(params)")))
      .stack(2, in("all_gather", at("main", "all_gather")));
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_NE(findings[0].summary.find("not found_inf"), std::string::npos);
}

TEST(DivergentBranch, LeavesAConditionInsideOfALoopThatWasLeftAlone) {
  constexpr const char* kLeft = R"(
def save():
    dist.barrier()

def main():
    for i, x in enumerate(loader):
        sync = (i + 1) % accumulate == 0
        if sync:
            dist.all_reduce(grads)
    save()
)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kLeft)
      .stack(kAll, in("all_reduce", at("main", "all_reduce")))
      .stack(2, in("barrier", at("save", "barrier") + " | " + at("main", "    save()")));
  EXPECT_TRUE(asked("divergent-branch", builder.build()).empty());
  EXPECT_EQ(asked("uneven-inputs", builder.build()).size(), 1U);
}

TEST(DivergentBranch, SeesEarlyStoppingThatLeavesTheLoop) {
  constexpr const char* kStopping = R"(
def main():
    for step in range(100):
        dist.all_reduce(grads)
        if loss < best_loss:
            break
    dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kStopping)
      .stack({0, 1}, in("all_reduce", at("main", "all_reduce")))
      .stack(2, in("barrier", at("main", "barrier")));
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
}

TEST(DivergentBranch, TakesALossForDataThoughItWasComputedFromTheRank) {
  constexpr const char* kDerived = R"(
def main():
    losses = make_losses() + (0.3 if dist.get_rank() == 1 else 0.0)
    for step in range(100):
        dist.all_reduce(grads)
        loss = losses[step].item()
        if step >= 5 and loss > 0.9:
            dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kDerived)
      .stack({0, 2}, in("all_reduce", at("main", "all_reduce")));
  builder.stack(1, in("barrier", at("main", "barrier")));
  EXPECT_EQ(asked("divergent-branch", builder.build()).size(), 1U);
  EXPECT_TRUE(asked("rank-conditional-collective", builder.build()).empty());
}

TEST(DivergentBranch, SeesTheStepThatASkippedBatchLeftOut) {
  constexpr const char* kSkipping = R"(
def main():
    for x in loader:
        loss = model(x)
        if not torch.isfinite(loss):
            continue
        loss.backward()
    dist.all_reduce(metric)
)";
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, kSkipping)
      .stack(0, in_backward(at("main", "backward")))
      .stack(1, in("all_reduce", at("main", "all_reduce")));
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

TEST(DivergentBranch, SeesOfTwoRanksTheOneThatTookTheBranch) {
  constexpr const char* kClock = R"(
def save_sometimes(self):
    if now - self.last > self.period:
        dist.all_gather_object(shards, step)

def main():
    while True:
        model(x).backward()
        save_sometimes(step)
)";
  for (const model::Rank saving : {0, 1}) {
    JobBuilder builder = job();
    builder.ranks(2)
        .source(kTrain, kClock)
        .stack(1 - saving, in_backward(at("main", "backward")))
        .stack(saving, in("all_gather_object", at("save_sometimes", "all_gather_object") + " | " +
                                                   at("main", "save_sometimes(step)")));
    const Findings findings = asked("divergent-branch", builder.build());
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].culprits, (model::RankSet{saving}));
    EXPECT_EQ(findings[0].locations.at(0).function, "save_sometimes");
  }
}

TEST(DivergentBranch, LeavesARankInItsExceptBlockToTheException) {
  constexpr const char* kHandler = R"(
def work(step):
    if bad_sample.any():
        raise ValueError
    dist.all_reduce(grads)

def main():
    try:
        work(step)
    except ValueError:
        dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, kHandler)
      .stack(0, in("all_reduce", at("work", "all_reduce") + " | " + at("main", "work(step)")))
      .stack(1, in("barrier", at("main", "barrier")));
  EXPECT_TRUE(asked("divergent-branch", builder.build()).empty());
  EXPECT_FALSE(asked("rank-raised", builder.build()).empty());
}

TEST(DivergentBranch, TakesStepCountersForAlikeOnAllRanks) {
  const auto counted = [](const std::string& condition) {
    JobBuilder builder = job();
    builder.ranks(3)
        .source(kTrain,
                "def main():\n"
                "    for step in range(100):\n"
                "        loss.backward()\n"
                "        if " +
                    condition +
                    ":\n"
                    "            dist.barrier()\n")
        .stack({0, 1}, in_backward(at("main", "backward")))
        .stack(2, in("barrier", at("main", "barrier")));
    return asked("divergent-branch", builder.build());
  };
  EXPECT_TRUE(counted("step % 10 == 0").empty());
  EXPECT_TRUE(counted("step % val.every == 0").empty());
  EXPECT_TRUE(counted("self.n % self.often == 0").empty());
  EXPECT_TRUE(counted("self.seen % self.often == 0").empty());  // one result for both ranks
  EXPECT_FALSE(counted("step % often(x) == 0").empty());
  EXPECT_FALSE(counted("len(seen) % often == 0").empty());
}

TEST(DivergentBranch, IsSilentWhileTheJobMovesOrAllAgree) {
  EXPECT_TRUE(asked("divergent-branch", moving(told().build())).empty());
  JobBuilder builder = told();
  builder.stack(2, in("broadcast", at("main", "broadcast")));
  EXPECT_TRUE(asked("divergent-branch", builder.build()).empty());
}

TEST(DivergentBranch, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = told();
  builder.unobserved(0);
  EXPECT_TRUE(nothing_likely(asked("divergent-branch", builder.build())));
}

TEST(DivergentBranch, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("divergent-branch", told().build())),
            essence(asked("divergent-branch", records_reversed(told().build()))));
}

TEST(DivergentBranch, SaysThatARankDiedOfTheDisagreement) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain,
              "def average(x):\n  dist.all_reduce(x)\ndef main():\n  for x in loader:\n"
              "    if x is None:\n      continue\n    net(x).backward()\n    average(x)\n")
      .stack(0, in_backward(at("main", "backward")))
      .killed(1, SIGABRT)
      .call(0, {.operation = "all_reduce", .site = site("main", "backward"), .count = 418})
      .call(1, {.operation = "all_reduce",
                .site = site("average", "all_reduce") + " | " + site("main", "    average(x)"),
                .count = 1})
      .log(1,
           "  what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 1672 vs 4. "
           "Received data size doesn't match expected size.\n");
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).note,
            "rank 1 died here, in all_reduce: gloo aborted it, because it received 1672 bytes and "
            "expected 4");
  EXPECT_NE(findings[0].summary.find("`x is None`"), std::string::npos);
}

constexpr const char* kRunId = R"(
def run_id():
    if (given := os.environ.get("RESUME")) is not None:
        return given
    dist.broadcast_object_list(box, src=0)

def main():
    run_id()
    dist.all_gather(counts, mine)
)";

JobBuilder resumed() {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kRunId)
      .stack(kAll, in("broadcast",
                      at("run_id", "broadcast_object_list") + " | " + at("main", "    run_id()")))
      .stack(1, in("all_gather", at("main", "all_gather")));
  return builder;
}

TEST(DivergentBranch, AVariableOfTheEnvironmentThatIsNotAlikePartsRanks) {
  JobBuilder builder = resumed();
  builder.fact("variable-unlike", {{"name", std::string("RESUME")},
                                   {"sides", std::vector<std::string>{"1"}},
                                   {"unset", std::string("0,2")}});
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].evidence.at(0).text.find("RESUME is not set on ranks 0,2"),
            std::string::npos);
  EXPECT_NE(findings[0].fix.find("RESUME"), std::string::npos);
}

TEST(DivergentBranch, AVariableThatIsAlikePartsNobody) {
  for (const Finding& finding : asked("divergent-branch", resumed().build())) {
    EXPECT_EQ(finding.summary.find("RESUME"), std::string::npos) << finding.summary;
  }
}

TEST(DivergentBranch, NamesTheCaseOfAMatchThatLacksTheCall) {
  constexpr const char* kMatch = R"(
class Node:
    def end_of_epoch(self):
        match self.role:
            case Role.CHIEF:
                save()
                dist.barrier()  # chief
            case Role.WORKER:
                dist.barrier()  # worker
            case Role.SPARE:
                pass

    def train(self):
        for epoch in range(4):
            loss().backward()
            self.end_of_epoch()
)";
  JobBuilder builder = job();
  const auto in_barrier = [](const std::string& line) {
    return in("barrier",
              at("Node.end_of_epoch", line) + " | " + at("Node.train", "self.end_of_epoch()"));
  };
  builder.ranks(3)
      .source(kTrain, kMatch)
      .stack(0, in_barrier("# chief"))
      .stack(1, in_barrier("# worker"))
      .stack(2, in_backward(at("Node.train", "backward")))
      .history(kAll, 1, 15, "all_reduce", site("Node.train", "backward"))
      .barrier(
          0, 16,
          site("Node.end_of_epoch", "# chief") + " | " + site("Node.train", "self.end_of_epoch()"))
      .barrier(
          1, 16,
          site("Node.end_of_epoch", "# worker") + " | " + site("Node.train", "self.end_of_epoch()"))
      .call(2, {.operation = "all_reduce", .sequence = 16, .site = site("Node.train", "backward")});
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  std::string lines;
  for (const Location& one : findings[0].locations) {
    lines += std::to_string(one.line) + " ";
  }
  EXPECT_EQ(lines, "6 8 14 3 9 ");
  EXPECT_EQ(findings[0].locations[1].rank, 1);
  EXPECT_NE(findings[0].fix.find("also in `case Role.SPARE` (train.py:9)"), std::string::npos)
      << findings[0].fix;
}

}  // namespace
}  // namespace ddpdoctor::detectors
