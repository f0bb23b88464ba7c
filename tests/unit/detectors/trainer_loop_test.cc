// SPDX-License-Identifier: Apache-2.0
// Ranks that have left Lightning's fit while others are still processing batches.
#include "collector/model/observed_values.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

using tests::Who;

const std::string kLightning = "@/v/site-packages/lightning/pytorch/";

std::string in_fit(const std::string& inner) {
  return inner + "py:Trainer._run" + kLightning + "trainer/trainer.py:1079 | py:Trainer._fit_impl" +
         kLightning + "trainer/trainer.py:630 | py:<module>@/srv/train.py:9";
}

/// Rank 1 is in the hook after the fit, the others in the next batch.
model::JobModel told(const std::string& stop) {
  const std::string batch = "py:_TrainingEpochLoop.advance" + kLightning +
                            "loops/training_epoch_loop.py:300 | py:_FitLoop.advance" + kLightning +
                            "loops/fit_loop.py:469 | py:Trainer._run_stage" + kLightning +
                            "trainer/trainer.py:1123 | ";
  JobBuilder builder = job();
  builder.ranks(3)
      .source("/srv/train.py", "class Stop(Callback):\n  def on_train_batch_end(self, trainer):\n" +
                                   stop + "\n  def on_fit_end(self):\n    barrier()\n")
      .stack(kAll, in("broadcast", in_fit(batch)))
      .stack(1, in("barrier", in_fit("py:Stop.on_fit_end@/srv/train.py:6 | ")));
  return builder.build();
}

const std::string kOwnStop = "    if self.ema < self.below:\n      trainer.should_stop = True";

TEST(TrainerLoop, NamesTheTestThatStopsOneRank) {
  const Findings findings = asked("divergent-branch", told(kOwnStop));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("self.ema < self.below"), std::string::npos);
}

TEST(TrainerLoop, EndsWithTheDataWhereNobodyStopsItByHimself) {
  for (const std::string stop : {"    pass\n    pass",
                                 "    stop = trainer.strategy.reduce_boolean_decision(bad)\n"
                                 "    if stop: trainer.should_stop = True"}) {
    EXPECT_TRUE(asked("divergent-branch", told(stop)).empty()) << stop;
    const Findings findings = asked("uneven-inputs", told(stop));
    ASSERT_EQ(findings.size(), 1U) << stop;
    EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  }
}

// Rank 1 computes its summary after the training; the others are in an overridden training_step in
// a file with the same base name as that of transformers.
TEST(TrainerLoop, IsInTheUsersCallOfItNotInTheStepThatItCalls) {
  const auto told = [](const std::string& hook) {
    const std::string hf = "@/v/site-packages/transformers/trainer.py:";
    const auto in_train = [&hf](const std::string& inner) {
      return inner + "py:Trainer._inner_training_loop" + hf + "1660 | py:Trainer.train" + hf +
             "1576 | py:<module>@/srv/train.py:5";
    };
    JobBuilder builder = job();
    builder.ranks(3)
        .source("/srv/train.py",
                "class Goal:\n  def on_step_end(self, a, s, c):\n" + hook + "\n\nt.train()\n")
        .source("/srv/own/trainer.py",
                "from transformers import Trainer\nclass Mine(Trainer):\n"
                "  def training_step(self, *a):\n"
                "    loss = super().training_step(*a)\n"
                "    self.kept.last = loss.item()\n    return loss\n")
        .stack(kAll, in_backward(in_train("py:Trainer.training_step" + hf +
                                          "1900 | py:Mine.training_step@/srv/own/trainer.py:4 | ")))
        .stack(1, in("all_gather", in_train("py:Trainer._finalize_training" + hf + "2009 | ")));
    return builder.build();
  };
  const Findings ended = asked("uneven-inputs", told("    pass"));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_NE(ended[0].summary.find("of `t.train()` (train.py:5)"), std::string::npos)
      << ended[0].summary;
  for (const std::string hook : {"    c.should_training_stop = self.kept.last < 0.1",
                                 "    c.should_training_stop = bool(self.kept.last < 0.1)"}) {
    const Findings findings = asked("divergent-branch", told(hook));
    ASSERT_EQ(findings.size(), 1U) << hook;
    EXPECT_EQ(findings[0].locations.back().line, 3);
  }
}

// Hugging Face: rank 1 computes its summary after the training, the others are in the next step.
TEST(TrainerLoop, NamesTheTestThatStopsOneRankOfHuggingFace) {
  const auto told = [](const std::string& stop) {
    const auto in_train = [](const std::string& inner) {
      return inner +
             "py:Trainer._inner_training_loop@/v/site-packages/transformers/trainer.py:1660"
             " | py:Trainer.train@/v/site-packages/transformers/trainer.py:1576 | "
             "py:<module>@/srv/train.py:9";
    };
    JobBuilder builder = job();
    builder.ranks(3)
        .source("/srv/train.py",
                "class Goal(TrainerCallback):\n  def on_step_end(self, a, s, c):\n" + stop + "\n")
        .stack(kAll, in_backward(in_train("py:Trainer.training_step@/v/site-packages/transformers/"
                                          "trainer.py:1900 | ")))
        .stack(1, in("all_gather",
                     in_train("py:Trainer._finalize_training@/v/site-packages/transformers/"
                              "trainer.py:2009 | ")));
    return builder.build();
  };
  const model::JobModel own =
      told("    if self.ema < self.goal:\n      c.should_training_stop = True");
  const Findings findings = asked("divergent-branch", own);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.back().line, 3);
  EXPECT_TRUE(asked("unused-parameters", own).empty());
  EXPECT_EQ(asked("uneven-inputs", told("    pass\n    pass")).size(), 1U);
}

/// Rank 0 of two is in a call of `mine`, rank 1 at the start of a batch; the rank's main is a child
/// of the script, so that no user line is under fit().
model::JobModel among_batches(const std::string& mine, const std::string& source,
                              const std::string& script) {
  const std::string advance =
      "py:_TrainingEpochLoop.advance" + kLightning + "loops/training_epoch_loop.py:300";
  JobBuilder builder = job();
  builder.ranks(2)
      .source("/srv/train.py", source)
      .stack(0, mine + advance + script)
      .stack(1, in("broadcast", "py:_TrainingEpochLoop._broadcast_sigterm_tensor" + kLightning +
                                    "loops/training_epoch_loop.py:320 | " + advance + script));
  builder.history(kAll, 1, 4, "all_reduce", "");
  builder.call(0, {.operation = "all_reduce", .sequence = 5, .site = ""})
      .call(1, {.operation = "broadcast", .sequence = 5, .site = ""});
  return builder.build();
}

TEST(TrainerLoop, IsPassedByWhereOnlyOneRankIsInACallOfTheUser) {
  const std::string clip =
      in("all_reduce", "py:Net.configure_gradient_clipping@/srv/train.py:4 | ");
  const auto told = [&clip](const std::string& test) {
    return among_batches(clip,
                         "class Net:\n  def configure_gradient_clipping(self, optimizer):\n" +
                             test + "\n    all_reduce(self.norm)\n",
                         "");
  };
  const Findings findings =
      asked("divergent-branch", told("    if self.norm < self.limit: return"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.back().line, 3);
  EXPECT_TRUE(asked("divergent-branch", told("    pass")).empty());
}

TEST(TrainerLoop, IsLeftOutForABatchByAHookOfTheUser) {
  const auto told = [](const std::string& hook) {
    return among_batches(
        in_backward(""),
        "import lightning\nclass Net(lightning.LightningModule):\n" + hook + "\n\n\n\n\n\n",
        " | py:<module>@/srv/train.py:9");
  };
  const model::JobModel own = told(
      "  def on_train_batch_start(self, b, i):\n    if self.enough.reached():\n      return -1");
  const Findings findings = asked("divergent-branch", own);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.back().line, 4);
  EXPECT_TRUE(asked("mismatched-op", own).empty());
  for (const char* hook :
       {"  def on_train_batch_start(self, b, i):\n    if self.enough.reached():\n      pass",
        "  def on_train_batch_start(self, b, i):\n    if 3 > 4:\n"
        "      return -1"}) {
    EXPECT_TRUE(asked("divergent-branch", told(hook)).empty()) << hook;
  }
}

TEST(TrainerLoop, IsLeftToTheLineOfTheUserThatPartsThem) {
  const model::JobModel told = among_batches(
      in_backward("py:Net.training_step@/srv/train.py:4 | "),
      "class Net:\n  def training_step(self, x, i):\n    if x.abs().max() > self.most: return\n"
      "    self.manual_backward(loss(x))\n\n\n\n\n\n",
      " | py:<module>@/srv/train.py:9");
  const Findings findings = asked("divergent-branch", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));  // by the rhythm of the steps before
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
}

const std::string kEpoch = "py:_TrainingEpochLoop.on_advance_end" + kLightning +
                           "loops/training_epoch_loop.py:406 | py:_FitLoop.advance" + kLightning +
                           "loops/fit_loop.py:469 | ";
const std::string kEvaluates =
    "py:_EvaluationLoop.run" + kLightning + "loops/evaluation_loop.py:153 | " + kEpoch;

/// Rank 1 is in the validation at the end of an epoch, rank 0 in a batch. An epoch is four batches
/// of a broadcast and an all_reduce each, and the validation makes `validations` all_gathers;
/// `begun`: the batch is the first of an epoch.
JobBuilder validating(const std::string& inner, const std::string& source, int validations,
                      bool begun) {
  const std::string batch = "py:_TrainingEpochLoop.advance" + kLightning +
                            "loops/training_epoch_loop.py:300 | py:_FitLoop.advance" + kLightning +
                            "loops/fit_loop.py:469 | ";
  JobBuilder builder = job();
  builder.ranks(2).source("/srv/train.py", source);
  std::int64_t next = 0;
  const auto call = [&](const model::RankSet& ranks, const std::string& operation) {
    for (const model::Rank rank : ranks) {
      builder.call(rank,
                   {.operation = operation, .sequence = next, .site = "<module>@/srv/train.py:9"});
    }
  };
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i < 4 - (epoch == 2 && !begun ? 1 : 0); ++i) {
      ++next, call({0, 1}, "broadcast");
      ++next, call({0, 1}, "all_reduce");
    }
    for (int i = 0; i < validations && (epoch < 2 || begun); ++i) {
      ++next, call({0, 1}, "all_gather");
    }
  }
  ++next;
  call({0}, "broadcast");
  call({1}, "barrier");
  builder.stack(0, in("broadcast", in_fit(batch)));
  builder.stack(1, in("barrier", in_fit(inner)));
  return builder;
}

const std::string kPlain = "import lightning\n\n\n\n\n\n\n\ntrainer.fit(net)\n";

TEST(TrainerLoop, RunsOutOfDataInTheMiddleOfAnEpoch) {
  const Findings findings =
      asked("uneven-inputs", validating(kEvaluates, kPlain, 2, false).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(TrainerLoop, DoesNotRunOutOfDataWhereAnotherEpochHasBegun) {
  const model::JobModel job = validating(kEvaluates, kPlain, 2, true).build();
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
  EXPECT_EQ(asked("mismatched-op", job).size(), 1U);
}

TEST(TrainerLoop, IsThatOfTheValidationWhereOneRankIsInABatchOfIt) {
  const std::string batch =
      "py:_EvaluationLoop._evaluation_step" + kLightning + "loops/evaluation_loop.py:430 | ";
  const Findings findings =
      asked("uneven-inputs", validating(batch + kEvaluates, kPlain, 2, true).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_NE(findings[0].summary.find("val_dataloaders"), std::string::npos);
}

TEST(TrainerLoop, IsNotWhatPartsThemBehindATestInAHook) {
  const auto hook = [](const std::string& test) {
    return "class Net:\n  def validation_step(self, x):\n    self.boxes.append(x)\n"
           "  def on_validation_epoch_end(self):\n    " +
           test + "\n    self.all_gather(1)\n\n\ntrainer.fit(net)\n";
  };
  const std::string inner = "py:Net.on_validation_epoch_end@/srv/train.py:6 | " + kEvaluates;
  for (const char* test : {"if not self.boxes: return", "if self.score >= self.best: return"}) {
    const model::JobModel job = validating(inner, hook(test), 0, true).build();
    const Findings findings = asked("divergent-branch", job);
    ASSERT_EQ(findings.size(), 1U) << test;
    EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
    EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
    EXPECT_EQ(findings[0].locations.back().line, 5);
    EXPECT_TRUE(asked("uneven-inputs", job).empty()) << test;
  }
  const model::JobModel always = validating(inner, hook("pass"), 0, true).build();
  EXPECT_TRUE(asked("divergent-branch", always).empty());
  EXPECT_EQ(asked("uneven-inputs", always).size(), 1U);
}

TEST(TrainerLoop, IsNotWhatPartsThemWhereOneRankReducesWhatItLogged) {
  const std::string inner = "py:_ResultMetric.compute" + kLightning +
                            "trainer/connectors/logger_connector/result.py:248 | " + kEvaluates;
  const auto logging = [](const std::string& log) {
    return "class Net:\n  def on_validation_epoch_end(self):\n    " + log +
           "\n\n\n\n\n\ntrainer.fit(net)\n";
  };
  const model::JobModel all =
      validating(inner, logging("self.log_dict(scores, sync_dist=True)"), 2, true).build();
  const Findings findings = asked("collective-count", all);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.front().line, 3);
  const model::JobModel one =
      validating(inner, logging("if self.global_rank == 0: self.log('a', 1, sync_dist=True)"), 2,
                 true)
          .build();
  EXPECT_EQ(asked("rank-conditional-collective", one).size(), 1U);
  EXPECT_TRUE(asked("collective-count", one).empty());
}

/// Rank 0 is in a call that a hook between two epochs makes through `chosen`, rank 1 in the next
/// epoch. Its memory was read, and shows nothing of the hook.
model::JobModel through_a_hook(const std::string& chosen) {
  const std::string fit = "py:_FitLoop.advance" + kLightning + "loops/fit_loop.py:469 | ";
  const std::string source =
      "class Sums:\n  def publish(self, m):\n    all_reduce(m)\n"
      "class Nothing:\n  def publish(self, m):\n    pass\n"
      "class Publish(Callback):\n"
      "  def setup(self, trainer):\n"
      "    self.out = " +
      chosen +
      "()\n"
      "  def on_train_epoch_end(self, trainer):\n"
      "    self.out.publish(self.metric)\n"
      "trainer = L.Trainer()\n"
      "trainer.fit(model)\n";
  const std::string run = "py:Trainer._run" + kLightning + "trainer/trainer.py:1079 | " +
                          "py:<module>@/srv/train.py:13";
  JobBuilder builder = job();
  builder.ranks(2)
      .source("/srv/train.py", source)
      .stack(0, in("all_reduce",
                   "py:Sums.publish@/srv/train.py:3 | py:Publish.on_train_epoch_end@/srv/"
                   "train.py:11 | py:_FitLoop.on_advance_end" +
                       kLightning + "loops/fit_loop.py:480 | " + run))
      .stack(1, in("broadcast", "py:_TrainingEpochLoop.advance" + kLightning +
                                    "loops/training_epoch_loop.py:300 | " + fit + run));
  model::JobModel told = builder.build();
  told.facts.push_back({.rank = 1,
                        .pid = told.observations.back().processes.back().pid,
                        .kind = std::string(model::kValueFact),
                        .fields = {{"role", std::string("held")},
                                   {"file", std::string("/srv/train.py")},
                                   {"line", std::int64_t{13}},
                                   {"expression", std::string("model")},
                                   {"value", std::string("Net")}}});
  return told;
}

TEST(TrainerLoop, IsPartedByAHookWhoseFunctionTheRankChose) {
  const Findings findings =
      asked("rank-conditional-collective",
            through_a_hook("{True: Sums, False: Nothing}[dist.get_rank() == 0]"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_TRUE(asked("rank-conditional-collective", through_a_hook("Sums")).empty());
  EXPECT_EQ(asked("uneven-inputs", through_a_hook("Sums")).size(), 1U);
}

/// Hugging Face without stacks: every call comes from one line. Two numbers are gathered after each
/// third step; rank 1 gathers one of type `last` after the first.
model::JobModel from_one_line(const std::string& stop, const std::string& last = "float32") {
  const std::string line = "<module>@/srv/train.py:9";
  JobBuilder builder = job();
  builder.ranks(2).source(
      "/srv/train.py", "class Goal(TrainerCallback):\n  def on_step_end(self, a, s, c):\n" + stop +
                           "\n\n\n\n\n\ntrainer.train()\n");
  std::int64_t sequence = 0;
  const auto gather = [&](const Who& who, const std::string& dtype) {
    builder.call(who, {.operation = "all_gather",
                       .sequence = sequence,
                       .site = line,
                       .count = 1,
                       .dtype = dtype});
  };
  for (int step = 1; step <= 7; ++step) {
    ++sequence;
    gather(kAll, "int64");
    builder.call(kAll, {.operation = "all_reduce",
                        .sequence = ++sequence,
                        .site = line,
                        .count = 4208,
                        .dtype = "float32"});
    if (step % 3 == 0) {
      ++sequence;
      gather(kAll, "float32");
    }
  }
  ++sequence;
  gather(0, "int64");
  gather(1, last);
  return builder.build();
}

TEST(TrainerLoop, IsLeftByARankWhoseCallNeverCameThereBefore) {
  const model::JobModel own =
      from_one_line("    if self.ema < self.goal:\n      c.should_training_stop = True");
  const Findings findings = asked("divergent-branch", own);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.back().line, 3);
  EXPECT_TRUE(asked("mismatched-dtype", own).empty());
  const model::JobModel unknown = from_one_line("    pass\n    pass");
  EXPECT_EQ(asked("divergent-branch", unknown).at(0).culprits, model::RankSet({1}));
  EXPECT_TRUE(asked("mismatched-dtype", unknown).empty());
  const model::JobModel cast = from_one_line("    pass\n    pass", "float16");
  EXPECT_EQ(asked("mismatched-dtype", cast).size(), 1U);
  EXPECT_TRUE(asked("divergent-branch", cast).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
