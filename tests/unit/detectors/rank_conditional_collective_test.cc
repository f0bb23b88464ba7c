// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def evaluate(model, rank):
    total = score(model)
    if rank == 0:
        dist.barrier()
        print(total)

def train(model, loader, rank):
    for batch in loader:
        loss = model(batch)
        loss.backward()
    evaluate(model, rank)

def main():
    rank = dist.get_rank()
    for epoch in range(10):
        train(model, loader, rank)

import torch.distributed as dist
)";

const std::string kMain = " | " + at("main", "train(model, loader, rank)");

JobBuilder told(int ranks, model::Rank odd) {
  JobBuilder builder = job();
  builder.ranks(ranks).source(kTrain, kSource);
  builder.stack(kAll, in_backward(at("train", "loss.backward()") + kMain));
  builder.stack(odd, in("barrier", at("evaluate", "dist.barrier()") + " | " +
                                       at("train", "evaluate(model, rank)") + kMain));
  return builder;
}

TEST(RankConditionalCollective, NamesTheRankTheLineAndTheBranch) {
  const Findings findings = asked("rank-conditional-collective", told(4, 0).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].waiting, (model::RankSet{1, 2, 3}));
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
  EXPECT_EQ(findings[0].locations.back().line, 3);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
}

/// Rank 0 is in a callback that main() runs on every rank that has it.
Findings with_callback(const std::string& installs, const std::string& function) {
  const std::string text = R"(
class Evaluator:
    def on_step(self, loss):
        if loss < best:
            dist.all_reduce(loss)

)" + installs + R"(

def main():
    callbacks = make()
    for step in range(9):
        loss.backward()
        for callback in callbacks:
            callback(loss)
)";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, text);
  builder.stack(kAll, in_backward(at("main", "loss.backward()")));
  builder.stack(
      0, in("all_reduce", at(function, "dist.all_reduce") + " | " + at("main", "callback(loss)")));
  return asked("rank-conditional-collective", builder.build());
}

TEST(RankConditionalCollective, SeesTheTestUnderWhichACallbackWasInstalled) {
  const auto under_if = with_callback(
      "def make():\n    made = []\n    if dist.get_rank() == 0:\n"
      "        made.append(Evaluator().on_step)\n    return made",
      "Evaluator.on_step");
  ASSERT_EQ(under_if.size(), 1U);
  EXPECT_EQ(under_if[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(under_if[0].locations.at(0).line, 4);
  EXPECT_EQ(under_if[0].locations.back().line, 8);
  const auto in_line = with_callback(
      "def make():\n    chief = dist.get_rank() == 0\n"
      "    return [Evaluator().on_step if chief else print]",
      "Evaluator.on_step");
  ASSERT_EQ(in_line.size(), 1U);
  EXPECT_NE(in_line[0].fix.find("`chief`"), std::string::npos);
}

TEST(RankConditionalCollective, IsNotSaidOfACallbackThatAllInstall) {
  EXPECT_TRUE(
      with_callback("def make():\n    return [Evaluator().on_step]", "Evaluator.on_step").empty());
  EXPECT_TRUE(with_callback("def make():\n    if dist.get_rank() == 0:\n"
                            "        Evaluator().on_step(0)\n    return [Evaluator().on_step]",
                            "Evaluator.on_step")
                  .empty());
}

TEST(RankConditionalCollective, SeesThatAFunctionExistsOnSomeRanksOnly) {
  constexpr const char* kClosure = R"(
def install(events):
    if int(os.environ["LOCAL_RANK"]):
        return
    def collect(history):
        if len(history) == every:
            dist.all_gather_object(out, history)
    events.append(collect)

def main():
    install(events)
    for step in range(9):
        loss.backward()
        for event in events:
            event(history)
)";
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kClosure);
  builder.stack(kAll, in_backward(at("main", "loss.backward()")));
  builder.stack({0, 2}, in("all_gather_object", at("install.<locals>.collect", "dist.all_gather") +
                                                    " | " + at("main", "event(history)")));
  const Findings findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(asked("divergent-branch", builder.build()).empty());
}

TEST(RankConditionalCollective, BreaksTheTieOfTwoRanksByTheBranch) {
  for (const model::Rank odd : {0, 1}) {
    JobBuilder builder = told(2, odd);
    const Findings findings = asked("rank-conditional-collective", builder.build());
    ASSERT_EQ(findings.size(), 1U) << odd;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{odd}));
  }
}

TEST(RankConditionalCollective, WalksBackToTheCallThatPairedByOrder) {
  constexpr const char* kPaired = R"(
def main():
    for step in range(100):
        dist.all_reduce(grads)
        if rank == 0:
            dist.all_reduce(metric)
        dist.all_reduce(loss)
    dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kPaired);
  // Rank 0's metric was matched with the others' loss; rank 0 is one call behind and is the only
  // one left.
  builder.all_reduce(kAll, 1, 8, site("main", "grads"));
  builder.all_reduce(0, 2, 8, site("main", "metric"))
      .all_reduce({1, 2}, 2, 8, site("main", "loss"));
  builder.all_reduce(0, 3, 8, site("main", "loss")).barrier({1, 2}, 3, site("main", "barrier"));
  builder.stack({1, 2}, in("barrier", at("main", "barrier")))
      .stack(0, in("all_reduce", at("main", "loss")));
  const Findings findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
}

TEST(RankConditionalCollective, BlamesTheRankThatATestLeadsPast) {
  constexpr const char* kSkipped = R"(
def main():
    rank = dist.get_rank()
    if rank != 0:
        dist.barrier()
    dist.all_reduce(grads)
)";
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kSkipped).stack({1, 2, 3}, in("barrier", at("main", "barrier")));
  builder.stack(0, in("all_reduce", at("main", "all_reduce")));
  const Findings findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 4);  // the call that the check skips
}

TEST(RankConditionalCollective, WorksFromRecordsAlone) {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kSource).history(kAll, 1, 5);
  builder.all_reduce(
      {1, 2, 3}, 6, 8,
      site("train", "loss.backward()") + " | " + site("main", "train(model, loader, rank)"));
  builder.barrier(0, 6,
                  site("evaluate", "dist.barrier()") + " | " +
                      site("train", "evaluate(model, rank)") + " | " +
                      site("main", "train(model, loader, rank)"));
  model::JobModel told = builder.build();
  told.observations.clear();
  const Findings findings = asked("rank-conditional-collective", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
}

TEST(RankConditionalCollective, MeetsARecordThatHasTheInnermostFramesOnly) {
  const auto path = [](const std::string& text) {
    return site("train", text) + " | " + site("main", "train(model, loader, rank)");
  };
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kSource).history({1, 2, 3}, 1, 4, "all_reduce", path("backward"));
  builder.history(0, 1, 3, "all_reduce", path("backward"))
      .barrier(0, 4, site("evaluate", "dist.barrier()") + " | " + site("train", "evaluate("));
  const Findings findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_NE(findings[0].summary.find("rank == 0"), std::string::npos) << findings[0].summary;
}

TEST(RankConditionalCollective, IsSilentWhileTheJobMoves) {
  EXPECT_TRUE(asked("rank-conditional-collective", moving(told(4, 0).build())).empty());
}

TEST(RankConditionalCollective, IsSilentWhenAllRanksAreThere) {
  JobBuilder builder = told(4, 0);
  builder.stack(kAll, in("barrier", at("evaluate", "dist.barrier()") + " | " +
                                        at("train", "evaluate(model, rank)") + kMain));
  EXPECT_TRUE(asked("rank-conditional-collective", builder.build()).empty());
}

TEST(RankConditionalCollective, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = told(4, 0);
  builder.unobserved(2);
  EXPECT_TRUE(nothing_likely(asked("rank-conditional-collective", builder.build())));
}

TEST(RankConditionalCollective, DoesNotDependOnTheOrderOfRanks) {
  const model::JobModel told_job = told(4, 0).build();
  EXPECT_EQ(essence(asked("rank-conditional-collective", told_job)),
            essence(asked("rank-conditional-collective", records_reversed(told_job))));
}

TEST(RankConditionalCollective, IsSilentWhereTheSameTestHoldsOnAllRanks) {
  constexpr const char* kGuard = R"(
def main():
    for step in range(9):
        if local_rank != -1:
            dist.barrier()
        loss.backward()
)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kGuard)
      .stack({0, 1}, in_backward(at("main", "backward")))
      .stack(2, in("barrier", at("main", "barrier")));
  EXPECT_TRUE(asked("rank-conditional-collective", builder.build()).empty());
}

TEST(RankConditionalCollective, SeesAHookThatALibraryCallsOnOneRank) {
  constexpr const char* kHooks = R"(
def on_epoch_end(trainer):
    if trainer.is_global_zero:
        dist.all_reduce(norm)

def training_step(batch):
    return loss

trainer.fit(model)
)";
  const std::string fit = "py:fit@/v/site-packages/lightning/trainer.py:10 | ";
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, kHooks)
      .stack(0, in("all_reduce",
                   at("on_epoch_end", "all_reduce") + " | " + fit + at("<module>", "trainer.fit")))
      .stack(1, in_backward(fit + at("<module>", "trainer.fit")));
  const Findings findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
}

TEST(RankConditionalCollective, KnowsALoggerThatLetsRecordsThroughOnSomeRanks) {
  const auto asked_with = [](const std::string& level, const char* kind) {
    JobBuilder builder = job();
    builder.ranks(3)
        .source(kTrain,
                "class Mean(logging.Filter):\n    def filter(self, record):\n"
                "        if hasattr(record, 'loss'):\n            dist.all_reduce(record.loss)\n"
                "def setup():\n    log.setLevel(" +
                    level +
                    ")\n    handler.addFilter(Mean())\n"
                    "def main():\n    for step in range(9):\n"
                    "        log.info('step', extra={'loss': 1})\n        dist.barrier()\n")
        .stack(kAll, in("barrier", at("main", "dist.barrier")))
        .stack(0, in("all_reduce",
                     at("Mean.filter", "dist.all_reduce") + " | " + at("main", "log.info")));
    return asked(kind, builder.build());
  };
  const Findings findings =
      asked_with("INFO if dist.get_rank() == 0 else WARNING", "rank-conditional-collective");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{0});
  EXPECT_NE(findings[0].fix.find("get_rank() == 0"), std::string::npos);
  // No other rank reaches the check in the filter, so it did not differ between ranks.
  EXPECT_TRUE(asked_with("options.level", "divergent-branch").empty());
  EXPECT_TRUE(asked_with("options.level", "rank-conditional-collective").empty());
}

TEST(RankConditionalCollective, NamesTheUsersCallWhereALibraryMakesTheCollective) {
  const std::string saves =
      "def on_epoch_end(trainer):\n  if trainer.is_global_zero:\n"
      "    trainer.save_checkpoint(path(1))\ndef main():\n  for x in loader:\n"
      "    net(x).backward()\n    on_epoch_end(trainer)\n";
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, saves)
      .stack(1, in_backward(at("main", "backward")))
      .stack(0, in("barrier", "py:save_checkpoint@/v/site-packages/lightning/trainer.py:9 | " +
                                  at("on_epoch_end", "save_checkpoint") + " | " +
                                  at("main", "    on_epoch_end(")));
  const Findings findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("called trainer.save_checkpoint() (it calls barrier)"),
            std::string::npos);
  EXPECT_TRUE(findings[0].fix.starts_with("Move trainer.save_checkpoint()"));
}

TEST(RankConditionalCollective, TellsACallInTheArgumentsOfAnotherByWhoRuns) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain,
              "def save(step):\n  if rank == 0:\n    torch.save(dcp.full_state(model), path)\n"
              "def main():\n  for x in loader:\n    net(x).backward()\n    save(step)\n")
      .stack(1, in_backward(at("main", "backward")))
      .stack(0, in("barrier", "py:full_state@/v/site-packages/torch/state.py:9 | " +
                                  at("save", "torch.save") + " | " + at("main", "    save(")));
  EXPECT_NE(asked("rank-conditional-collective", builder.build())
                .at(0)
                .summary.find("called dcp.full_state() (it calls barrier)"),
            std::string::npos);
}

TEST(RankConditionalCollective, TellsOneCallOfSeveralByItsColumns) {
  const std::string line =
      "    values = {k: round(v, 4) for k, v in self.metrics.compute().items()}";
  const std::string reports = "def report(self):\n  if rank == 0:\n" + line +
                              "\ndef main():\n  for x in loader:\n    net(x).backward()\n"
                              "    board.report()\n";
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, reports)
      .stack(1, in_backward(at("main", "backward")))
      .stack(0, in("barrier", at("report", "values") + " | " + at("main", "board.report()")));
  model::JobModel told = builder.build();
  EXPECT_NE(asked("rank-conditional-collective", told).at(0).summary.find("called barrier inside"),
            std::string::npos);
  const std::string call = "self.metrics.compute()";
  for (model::Observation& observation : told.observations) {
    for (model::Process& process : observation.processes) {
      for (model::Thread& thread : process.threads) {
        for (model::Frame& frame : thread.frames) {
          if (frame.function == "report") {
            frame.column = static_cast<int>(line.find(call)) + 1;
            frame.end_line = frame.line;
            frame.end_column = frame.column + static_cast<int>(call.size());
          }
        }
      }
    }
  }
  EXPECT_NE(asked("rank-conditional-collective", told)
                .at(0)
                .summary.find("called self.metrics.compute() (it calls barrier)"),
            std::string::npos);
}

TEST(RankConditionalCollective, ATernaryLeadsToTheCallInItsOwnStatement) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source("/srv/train.py",
              "def main():\n    shown = total(tokens) if step % 20 == 19 and dist.get_rank() == 0 "
              "else tokens\n"
              "    dist.broadcast(loss, 0)\n\n\ndef total(t):\n    dist.all_reduce(t)\n")
      .stack(0, in("all_reduce", "py:total@/srv/train.py:7 | py:main@/srv/train.py:2"))
      .stack(1, in("broadcast", "py:main@/srv/train.py:3"));
  const auto findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
}

}  // namespace
}  // namespace ddpdoctor::detectors
