// SPDX-License-Identifier: Apache-2.0
// Ranks that have left Lightning's fit while others are among the batches.
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

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

}  // namespace
}  // namespace ddpdoctor::detectors
