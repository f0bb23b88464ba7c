// SPDX-License-Identifier: Apache-2.0
// Training as a generator of events: ranks do not diverge at its last event, but at the end of its
// loop.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// `in_loop` and `behind` are what the generator yields.
JobBuilder told(const std::string& in_loop, const std::string& behind) {
  const std::string source =
      "def training(source):\n  while (batch := source()) is not None:\n"
      "    model(batch).backward()\n    yield " +
      in_loop + "\n  yield " + behind +
      "\n\ndef averaged(events):\n  for e in events:\n    if e.name == 'end':\n"
      "      dist.all_gather(seen, e.step)\n    yield e\n";
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, source);
  builder.stack(0, in_backward(at("training", "backward") + " | " + at("averaged", "for e in")));
  builder.stack(1, in("all_gather", at("averaged", "all_gather")));
  return builder;
}

TEST(GeneratorLoop, IsWhatEndedWhereTheItemComesFromBehindIt) {
  const model::JobModel job = told("Event('step', loss)", "Event('end', 0)").build();
  const Findings findings = asked("uneven-inputs", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].locations.back().line, 2);
  EXPECT_TRUE(asked("divergent-branch", job).empty());
}

TEST(GeneratorLoop, LeavesTheTestOfAnItemFromWithinTheLoopAlone) {
  for (const model::JobModel& job : {told("Event(mark(loss), 'end')", "Event('end', 0)").build(),
                                     told("Event(mark(loss), loss)", "Event('last', 0)").build()}) {
    EXPECT_TRUE(asked("uneven-inputs", job).empty());
    EXPECT_EQ(asked("divergent-branch", job).size(), 1U);
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
