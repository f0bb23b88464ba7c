// SPDX-License-Identifier: Apache-2.0
// Tasks of a trainer that the user's code asks for on some ranks only.
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

// Hugging Face: rank 0 evaluates after a step, the others are in the next step.
TEST(TrainerTask, NamesTheLineThatAsksOneRankForAnEvaluation) {
  const auto told = [](const std::string& asks, const std::string& does) {
    const std::string hf = "@/v/site-packages/transformers/trainer.py:";
    const auto in_train = [&hf](const std::string& inner) {
      return inner + "py:Trainer._run_epoch" + hf + "1958 | py:Trainer.train" + hf +
             "1576 | py:<module>@/srv/train.py:9";
    };
    JobBuilder builder = job();
    builder.ranks(3)
        .source("/srv/train.py",
                "import time\nclass Paced(TrainerCallback):\n  def on_step_end(self, a, s, c):\n" +
                    asks + "\n\n\n\n\nbuild().train()\n")
        .stack(kAll, in_backward(in_train("py:Trainer.training_step" + hf + "2126 | ")))
        .stack(0, in("all_gather",
                     in_train("py:Trainer." + does + hf +
                              "3310 | py:Trainer._maybe_log_save_evaluate" + hf + "2278 | ")));
    return builder.build();
  };
  const std::string clock = "    c.should_evaluate = time.monotonic() > self.next";
  const Findings findings = asked("divergent-branch", told(clock, "_evaluate"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.back().line, 4);
  EXPECT_NE(findings[0].summary.find("only rank 0 called all_gather"), std::string::npos)
      << findings[0].summary;
  EXPECT_TRUE(asked("divergent-branch", told(clock, "_save_checkpoint")).empty());
  const std::string counted = "    c.should_evaluate = s.global_step % 60 == 0";
  EXPECT_TRUE(asked("divergent-branch", told(counted, "_evaluate")).empty());
  EXPECT_EQ(asked("divergent-branch", told("    if self.loss.item() < self.best:\n"
                                           "      c.should_save = True",
                                           "_save_checkpoint"))
                .size(),
            1U);
}

}  // namespace
}  // namespace ddpdoctor::detectors
