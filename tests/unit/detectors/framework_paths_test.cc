// SPDX-License-Identifier: Apache-2.0
// The end of an epoch in Lightning: either the data of some ranks end, or one rank leaves a call of
// the validation out.
#include "base/text.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kLightning = "/v/site-packages/lightning/pytorch/";
const std::string kLoops = kLightning + "loops/training_epoch_loop.py";

const std::string kEpoch = R"(class _TrainingEpochLoop:
    def run(self, fetcher):
        while not self.done:
            self.advance(fetcher)
            self.on_advance_end(fetcher)

    def advance(self, fetcher):
        self.broadcast()

    def on_advance_end(self, fetcher):
        self.val_loop.run()
)";

/// Rank 2 is in the next batch; the others are in the validation.
Findings told(std::string_view kind, const std::string& test) {
  const std::string at = "@" + kLoops + ":";
  const std::string fit = " | py:_TrainingEpochLoop.run" + at;
  const std::string run = " | py:Trainer._run_stage@" + kLightning +
                          "trainer/trainer.py:1123 | py:<module>@/srv/train.py:9";
  JobBuilder builder = job();
  builder.ranks(4)
      .source("/srv/train.py",
              "import lightning, time\nclass Net(lightning.LightningModule):\n"
              "  def on_validation_epoch_end(self):\n    if " +
                  test + ":\n      self.log('recall', 1)\n\n\n\ntrainer.fit(net)\n")
      .stack(kAll, in("barrier", "py:_EvaluationLoop.run@" + kLightning +
                                     "loops/evaluation_loop.py:171 | "
                                     "py:_TrainingEpochLoop.on_advance_end" +
                                     at + "11" + fit + "5" + run))
      .stack(2, in("broadcast", "py:_TrainingEpochLoop.advance" + at + "8" + fit + "4" + run));
  model::JobModel job = builder.build();
  int number = 0;
  for (const std::string_view line : base::split(kEpoch, '\n')) {
    job.framework_sources[kLoops][++number] = line;
  }
  return asked(kind, job);
}

TEST(FrameworkPaths, ADecisionOfTheRanksOwnMayHaveLeftOutACallOfTheValidation) {
  EXPECT_TRUE(told("uneven-inputs", "time.time() > self.until").empty());
}

TEST(FrameworkPaths, WithoutOneTheDataOfSomeRanksEndEarlier) {
  EXPECT_EQ(told("uneven-inputs", "True").size(), 1U);
}

const std::string kHugging = "/v/site-packages/transformers/trainer.py";

/// Hugging Face's epoch: rank 1 is in a step, the others log at `line` of the epoch.
model::JobModel logs_at(int line) {
  const std::string at = "@" + kHugging + ":";
  const std::string train = " | py:Trainer.train" + at + "20 | py:<module>@/srv/train.py:2";
  JobBuilder builder = job();
  builder.ranks(2)
      .source("/srv/train.py", "trainer = Trainer(args)\ntrainer.train()\n")
      .stack(0,
             in("all_gather", "py:Trainer._maybe_log_save_evaluate" + at +
                                  "9 | py:Trainer._run_epoch" + at + std::to_string(line) + train))
      .stack(1, in_backward("py:Trainer.training_step" + at + "12 | py:Trainer._run_epoch" + at +
                            "3" + train));
  model::JobModel job = builder.build();
  job.framework_sources[kHugging] = {{1, "def _run_epoch(self, loader):"},
                                     {2, "    for inputs in loader:"},
                                     {3, "        self.training_step(inputs)"},
                                     {4, "        self._maybe_log_save_evaluate()"},
                                     {5, "    self._maybe_log_save_evaluate()"}};
  return job;
}

TEST(FrameworkPaths, ARankBehindTheLoopOverBatchesHadFewerOfThem) {
  const Findings findings = asked("uneven-inputs", logs_at(5));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_TRUE(asked("uneven-inputs", logs_at(4)).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
