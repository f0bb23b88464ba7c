// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

// `if agree: all_reduce(stop)` with the option off: complete records have no call from that line.
TEST(DivergentBranch, AnAgreementThatTheRecordsDoNotHaveDidNotTakePlace) {
  const auto told = [](bool agreed) {
    JobBuilder builder = job();
    builder.ranks(3)
        .source(
            kTrain,
            "def main():\n  while True:\n    step()\n    worst = loss.item() > 9\n"
            "    if agree:\n      dist.all_reduce(worst)\n    if worst:\n      dist.barrier()\n")
        .complete_history();
    std::int64_t last = 0;
    for (int i = 0; i < 3; ++i) {
      builder.all_reduce(kAll, ++last, 1024, site("main", "step()"));
      if (agreed) {
        builder.all_reduce(kAll, ++last, 1, site("main", "all_reduce(worst)"));
      }
    }
    return builder.barrier(1, last + 1, site("main", "barrier"))
        .all_reduce({0, 2}, last + 1, 1024, site("main", "step()"))
        .stack(kAll, in("all_reduce", at("main", "step()")))
        .stack(1, in("barrier", at("main", "barrier")))
        .build();
  };
  const Findings findings = asked("divergent-branch", told(false));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("`worst`"), std::string::npos) << findings[0].summary;
  for (const Finding& finding : asked("divergent-branch", told(true))) {
    EXPECT_EQ(finding.summary.find("`worst`"), std::string::npos) << finding.summary;
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
