// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kLineSearch = R"(
class Solver:
    def __init__(self):
        self.opt = torch.optim.LBFGS(self.net.parameters(), line_search_fn="strong_wolfe")

    def average(self):
        for p in self.net.parameters():
            dist.all_reduce(p.grad)

    def closure(self):
        loss = self.loss()
        self.average()
        return loss

    def solve(self):
        for k in range(10):
            loss = self.opt.step(self.closure)
            dist.all_gather_object(losses, loss.item())
)";

JobBuilder with_closure(const std::string& text, const std::string& library = "lbfgs") {
  JobBuilder builder = job();
  const std::string below = " | py:step@/v/site-packages/torch/optim/" + library + ".py:410 | ";
  builder.ranks(2)
      .source(kTrain, text)
      .call(0, {.operation = "all_reduce",
                .sequence = 61,
                .site = site("Solver.average", "all_reduce") + " | " +
                        site("Solver.closure", "average()") + " | " +
                        site("Solver.solve", "opt.step")})
      .call(1, {.operation = "all_gather",
                .sequence = 61,
                .site = site("Solver.solve", "all_gather_object")})
      .stack(0, in("all_reduce", at("Solver.average", "all_reduce") + " | " +
                                     at("Solver.closure", "average()") + below +
                                     at("Solver.solve", "opt.step")))
      .stack(1, in("all_gather_object", at("Solver.solve", "all_gather_object")));
  return builder;
}

TEST(CallbackCount, NamesTheLineSearchThatCallsItsClosureAnotherNumberOfTimes) {
  const Findings findings = asked("divergent-branch", with_closure(kLineSearch).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_TRUE(findings[0].summary.starts_with(
      "self.opt.step() called self.closure() more times on rank 0 than on rank 1"))
      << findings[0].summary;
  EXPECT_EQ(findings[0].locations.back().line, 16);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(asked("collective-count", with_closure(kLineSearch).build()).empty());
}

TEST(CallbackCount, BlamesNoOptimizerThatCallsItsClosureOnce) {
  EXPECT_TRUE(asked("divergent-branch", with_closure(kLineSearch, "adamw").build()).empty());
  // Silent too if the other cohort may have left the loop around it, or passed a check after it.
  std::string text = kLineSearch;
  text.replace(text.find("            dist.all_gather_object"), 12, "        ");
  EXPECT_TRUE(asked("divergent-branch", with_closure(text).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
