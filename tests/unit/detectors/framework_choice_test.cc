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
      .stack(kAll, in("barrier", "py:Loop.close_step@" + kLoop + ":20 | py:Loop.run@" + kLoop +
                                     ":10" + run))
      .stack(1, in("all_gather", "py:Loop.review@" + kLoop + ":14 | py:Loop.run@" + kLoop + ":9" +
                                     run));
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
  const Findings findings =
      asked("divergent-branch",
            told("    loop.orders.look_back = time.time() - self.since > 60\n"));
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

}  // namespace
}  // namespace ddpdoctor::detectors
