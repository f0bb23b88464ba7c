// SPDX-License-Identifier: Apache-2.0
// A framework's condition leads the ranks to different calls; the user's code decides its value.
#include "base/text.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kLoop = "/v/site-packages/stepper/loop.py";

const std::string kFramework = R"(class Loop:
    def run(self):
        for batch in self.batches:
            self.step(batch)
            self.hooks.call("after_step", self)
            if self.verbose:
                self.show()
            if self.orders.look_back:
                self.review()
            self.close_step()

    def review(self):
        if self.keeps_scores:
            self.gather(self.scores)
)";

std::map<int, std::string> numbered(const std::string& text) {
  std::map<int, std::string> out;
  for (const std::string_view line : base::split(text, '\n')) {
    out[static_cast<int>(out.size()) + 1] = line;
  }
  return out;
}

/// Rank 1 of three reviews, the others close the step.
model::JobModel told(const std::string& hook, bool with_source = true) {
  const std::string run = " | py:<module>@/srv/train.py:9";
  JobBuilder builder = job();
  builder.ranks(3)
      .source("/srv/hooks.py", "import time\nclass Watch:\n  def after_step(self, loop):\n" + hook)
      .stack(kAll, in("barrier",
                      "py:Loop.close_step@" + kLoop + ":20 | py:Loop.run@" + kLoop + ":10" + run))
      .stack(1, in("all_gather",
                   "py:Loop.review@" + kLoop + ":14 | py:Loop.run@" + kLoop + ":9" + run));
  model::JobModel job = builder.build();
  if (with_source) {
    job.framework_sources[kLoop] = numbered(kFramework);
  }
  return job;
}

const std::string kByTheClock =
    "    if time.time() - self.since > 60:\n      loop.orders.look_back = True\n";

TEST(FrameworkChoice, IsTheUsersLineThatDecidesWhatTheFrameworkTests) {
  const Findings findings = asked("divergent-branch", told(kByTheClock));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.back().file, "/srv/hooks.py");
  EXPECT_EQ(findings[0].locations.back().line, 4);
  EXPECT_NE(findings[0].summary.find("time.time() - self.since > 60"), std::string::npos)
      << findings[0].summary;
}

TEST(FrameworkChoice, IsAlsoAnAssignedValue) {
  const Findings findings = asked(
      "divergent-branch", told("    loop.orders.look_back = time.time() - self.since > 60\n"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.back().line, 4);
}

TEST(FrameworkChoice, NeedsADecisionOfTheRanksOwn) {
  for (const auto& model : {told("    loop.orders.look_back = loop.step % 10 == 0\n"),
                            told("    pass\n"), told(kByTheClock, false)}) {
    for (const Finding& finding : asked("divergent-branch", model)) {
      for (const Location& one : finding.locations) {
        EXPECT_NE(one.file, "/srv/hooks.py");
      }
    }
  }
}

/// A line of hooks.py is among the places.
bool names_hook(const std::string& hook) {
  for (const Finding& finding : asked("divergent-branch", told(hook))) {
    for (const Location& one : finding.locations) {
      if (one.file == "/srv/hooks.py") {
        return true;
      }
    }
  }
  return false;
}

TEST(FrameworkChoice, IsNoObjectOfALibrary) {
  const std::string sets = "    loop.orders.look_back = ";
  const std::string files = "(len(os.listdir('.')))\n";
  EXPECT_FALSE(names_hook(sets + "optim.AdamW" + files));
  EXPECT_FALSE(names_hook(sets + "AdamW" + files));
  EXPECT_TRUE(names_hook(sets + "optim.adamw" + files));
  EXPECT_TRUE(names_hook(sets + "AdamW([1]) if random.random() > 1 else None\n"));
}

const std::string kTrainer = "/v/site-packages/stepper/trainer.py";
const std::string kFit = "<module>@/srv/train.py:9";

const std::vector<std::string> kEvaluation = {
    "9 Trainer.after " + kTrainer, "6 Trainer.epoch " + kTrainer, "9 <module> /srv/train.py"};

/// Ranks 0 and 2 save after an evaluation; rank 1 is in the next step. `frames`: those of the
/// evaluation in the records.
model::JobModel saving(const std::vector<std::string>& frames) {
  const std::string main = " | py:<module>@/srv/train.py:9";
  const std::string loop = " | py:Trainer.epoch@" + kTrainer;
  JobBuilder builder = job();
  builder.ranks(3)
      .source("/srv/train.py", "\n\n\n\n\n\n\n\ntrainer.fit()\n")
      .call(kAll, {.operation = "all_gather", .sequence = 1, .site = kFit, .count = 1})
      .call(0, {.operation = "barrier", .sequence = 2, .site = kFit})
      .call(2, {.operation = "barrier", .sequence = 2, .site = kFit})
      .call(1, {.operation = "broadcast", .sequence = 2, .site = kFit, .count = 8})
      .stack(kAll, in("barrier", "py:Trainer.save@" + kTrainer + ":14 | py:Trainer.after@" +
                                     kTrainer + ":11" + loop + ":6" + main))
      .stack(1, in("broadcast", "py:Trainer.step@" + kTrainer + ":16" + loop + ":4" + main));
  for (model::Rank rank = 0; !frames.empty() && rank < 3; ++rank) {
    builder.fact("call-frames",
                 {{"group", std::string("0")}, {"sequence", std::int64_t{1}}, {"frames", frames}},
                 rank);
  }
  model::JobModel job = builder.build();
  job.framework_sources[kTrainer] = numbered(R"(import os, time
class Trainer:
    def epoch(self):
        for batch in self.batches: self.step(batch)
        if os.path.exists(self.mark):
            self.after()

    def after(self):
        self.evaluate()
        if time.time() - self.began > 9:
            self.save()

    def save(self):
        self.barrier()
    def step(self, batch):
        self.broadcast(batch)
)");
  return job;
}

TEST(FrameworkChoice, ComesAfterTheLastCallThatAllMade) {
  // A recording has the innermost frames only.
  for (const auto& frames : {kEvaluation, {kEvaluation.begin(), kEvaluation.begin() + 2}}) {
    const Findings findings = asked("divergent-branch", saving(frames));
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
    EXPECT_NE(findings[0].summary.find("time.time() - self.began"), std::string::npos)
        << findings[0].summary;
  }
}

TEST(FrameworkChoice, IsNotGuessedAmongAllConditionsOfAFramework) {
  for (const Finding& finding : asked("divergent-branch", saving({}))) {
    EXPECT_EQ(finding.summary.find("os.path.exists"), std::string::npos) << finding.summary;
  }
}

/// A framework runs the user's writer on rank 0 only; a subclass says which rank that is.
const std::string kSaver = R"(class Saver:
    @property
    @abstractmethod
    def is_global_zero(self):
        """Whether this is the first process."""
    def save(self, path):
        if self.is_global_zero:
            self.writer.write(path)
        self.close()
)";

TEST(FrameworkChoice, IsATestOfTheRankBeforeTheUsersCode) {
  const std::string save = "/v/site-packages/stepper/save.py";
  const std::string run = " | py:<module>@/srv/train.py:9";
  model::JobModel job =
      tests::job()
          .ranks(3)
          .source("/srv/write.py", "class Writer:\n  def write(self, path):\n    barrier()\n")
          .stack(kAll, in("broadcast",
                          "py:Saver.close@" + save + ":12 | py:Saver.save@" + save + ":9" + run))
          .stack(0, in("barrier",
                       "py:Writer.write@/srv/write.py:3 | py:Saver.save@" + save + ":8" + run))
          .build();
  job.framework_sources[save] = numbered(kSaver);
  const Findings findings = asked("rank-conditional-collective", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.front().file, "/srv/write.py");
  EXPECT_NE(findings[0].fix.find("the framework runs on rank 0 only"), std::string::npos)
      << findings[0].fix;
}

/// Rank 0 is in the barrier of log(), rank 1 in backward. `each`: the calls of the steps before.
model::JobModel logging(const std::vector<std::string>& each) {
  const std::string trainer = "/v/site-packages/transformers/trainer.py";
  const std::string loop = " | py:Trainer._run_epoch@" + trainer;
  const std::string main = " | py:<module>@/srv/train.py:9";
  JobBuilder builder = job();
  builder.ranks(2).source("/srv/train.py", "\n\n\n\n\n\n\n\ntrainer.fit()\n");
  std::int64_t at = 1;
  for (int step = 0; step < 3; ++step) {
    for (const std::string& operation : each) {
      builder.call(kAll, {.operation = operation, .sequence = at++, .site = kFit, .count = 8});
    }
  }
  builder.call(0, {.operation = "barrier", .sequence = at, .site = kFit, .count = 8});
  builder.call(1, {.operation = "all_reduce", .sequence = at, .site = kFit, .count = 8});
  builder.stack(0, in("barrier", "py:Trainer.log@" + trainer + ":10" + loop + ":5" + main));
  builder.stack(1, in_backward("py:Trainer.training_step@" + trainer + ":7" + loop + ":4" + main));
  for (const model::Rank rank : {0, 1}) {
    builder.fact("call-frames",
                 {{"group", std::string("0")},
                  {"sequence", at - 1},
                  {"frames", std::vector<std::string>{"11 Trainer.log " + trainer,
                                                      "5 Trainer._run_epoch " + trainer,
                                                      "9 <module> /srv/train.py"}}},
                 rank);
  }
  model::JobModel job = builder.build();
  job.framework_sources[trainer] = numbered(R"(class Trainer:
    def _run_epoch(self):
        for batch in self.batches:
            self.training_step(batch)
            self.log()
    def training_step(self, batch):
        self.loss(batch).backward()
    def log(self):
        if time.time() - self.began > 9:
            self.barrier()
        self.broadcast(self.state)
)");
  return job;
}

TEST(FrameworkChoice, IsNotNewWhereItsCallAlwaysCameAfterTheBackward) {
  const model::JobModel lacks = logging({"all_reduce", "barrier", "broadcast"});
  EXPECT_TRUE(asked("divergent-branch", lacks).empty());
  const Findings findings = asked("unused-parameters", lacks);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(asked("divergent-branch", logging({"all_reduce", "broadcast"})).size(), 1U);
}

}  // namespace
}  // namespace ddpdoctor::detectors
