// SPDX-License-Identifier: Apache-2.0
// An epoch that is one statement: consume(map(step, loader)).
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// Rank 0 is in the barrier behind `statement`, rank 1 in the backward of a step below it.
JobBuilder told(const std::string& statement, const std::string& before = "",
                const std::string& indent = "  ", std::int64_t steps = 20) {
  const std::string source = "def step(model, batch):\n  model(batch).backward()\n\ndef main():\n" +
                             before + indent + statement + "\n" + indent + "dist.barrier()\n";
  const std::string way = " | " + site("main", statement);
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, source);
  builder.history(kAll, 1, steps, "all_reduce", site("step", "backward") + way);
  builder.all_reduce(1, steps + 1, 1024, site("step", "backward") + way);
  builder.barrier(0, steps + 1, site("main", "dist.barrier"));
  builder.stack(0, in("barrier", at("main", "dist.barrier")));
  builder.stack(1, in_backward(at("step", "backward") + " | " + at("main", statement)));
  return builder;
}

const std::string kMap = "last = consume(map(partial(step, model), loader))";

TEST(HiddenLoop, IsAMapThatOneRankHasLeft) {
  const Findings findings = asked("uneven-inputs", told(kMap).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_NE(findings[0].summary.find("`map(partial(step, model), loader)`"), std::string::npos)
      << findings[0].summary;
  EXPECT_TRUE(asked("mismatched-op", told(kMap).build()).empty());
}

TEST(HiddenLoop, IsNoStatementThatMapsNothingOrRanOnce) {
  EXPECT_TRUE(
      asked("uneven-inputs", told("last = consume(model.map(step), loader)").build()).empty());
  EXPECT_TRUE(asked("uneven-inputs", told(kMap, "", "  ", 3).build()).empty());
}

TEST(HiddenLoop, IsNotToldOfAnEpochAmongOthers) {
  const model::JobModel job = told(kMap, "  for epoch in range(9):\n", "    ").build();
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
