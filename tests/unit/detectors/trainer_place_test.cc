// SPDX-License-Identifier: Apache-2.0
// A host that has run ahead of the last call of its trainer.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// Over NCCL: the last call of rank 1 was made by the trainer, and its host stands behind the line
/// that ran it, or (`host`) elsewhere. Rank 0 is in the user's step.
model::JobModel ran_ahead(const std::string& host) {
  const std::string hf = "@/v/site-packages/transformers/trainer.py:";
  const std::string step =
      site("Mine.training_step", "loss = super") + " | <module>@/srv/train.py:9";
  JobBuilder builder = job();
  builder.ranks(2)
      .backend("nccl")
      .source(kTrain,
              "class Goal(TrainerCallback):\n  def on_step_end(self, a, s, c):\n"
              "    if self.ema < self.goal:\n      c.should_training_stop = True\n"
              "class Mine(Trainer):\n  def training_step(self, *a):\n"
              "    loss = super().training_step(*a)\n    print(loss.item())\n"
              "trainer.train()\nbarrier()\n")
      .history(kAll, 1, 6, "broadcast", step)
      .call(0, {.operation = "broadcast",
                .sequence = 7,
                .site = step,
                .state = model::CallState::kStarted})
      .call(1, {.operation = "all_gather",
                .sequence = 7,
                .site = "<module>@/srv/train.py:9",
                .state = model::CallState::kStarted})
      .call(0, {.operation = "all_reduce",
                .sequence = 8,
                .site = "",
                .state = model::CallState::kStarted})
      .call(1, {.operation = "barrier",
                .sequence = 8,
                .site = "<module>@/srv/train.py:10",
                .state = model::CallState::kStarted})
      .stack(0,
             "native:??@libcuda.so.1 | native:cuStreamSynchronize@libcuda.so.1 | "
             "py:Mine.training_step@/srv/train.py:8 | py:Trainer._run_epoch" +
                 hf + "1842 | py:Trainer.train" + hf + "1520 | py:<module>@/srv/train.py:9")
      .stack(1, in("barrier", host));
  return builder.build();
}

TEST(TrainerPlace, IsLeftByAHostThatStandsBehindTheLineOfItsLastCall) {
  const model::JobModel left = ran_ahead("py:<module>@/srv/train.py:10");
  const Findings findings = asked("divergent-branch", left);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.back().line, 3);
  EXPECT_TRUE(asked("mismatched-op", left).empty());
  EXPECT_TRUE(asked("divergent-branch", ran_ahead("py:<module>@/srv/train.py:9")).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
