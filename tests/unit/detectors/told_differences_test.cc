// SPDX-License-Identifier: Apache-2.0
// Libraries that compare what ranks passed and raise an exception on all ranks.
#include <string>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

const std::string kHead =
    "Traceback (most recent call last):\n  File \"/srv/a.py\", line 3, in f\n    g()\n";

std::string shapes(const std::string& list) {
  return kHead +
         "accelerate.utils.operations.DistributedOperationException: Cannot apply desired "
         "operation "
         "due to shape mismatches. All shapes across devices must be valid.\n\nOperation: "
         "`accelerate.utils.operations.gather`\nInput shapes:\n" +
         list;
}

TEST(ToldDifference, OfShapesNamesTheMinority) {
  const auto findings =
      asked("mismatched-shape",
            job()
                .log({}, shapes("  - Process 0: [4]\n  - Process 1: [6]\n  - Process 2: [6]\n"))
                .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].summary, "rank 0 passed [4] to gather, but ranks 1 and 2 passed [6]");
}

TEST(ToldDifference, OfTwoRanksAccusesNone) {
  const auto findings =
      asked("mismatched-shape",
            job().log({}, shapes("  - Process 0: [4]\n  - Process 1: [6]\n")).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
}

TEST(ToldDifference, OfLossesSaysWhatARankLacks) {
  const std::string raised =
      kHead + "AssertionError: loss log variables are different across GPUs!\n";
  const auto findings =
      asked("divergent-branch", job()
                                    .log({}, raised + "rank 0 len(log_vars): 2 keys: a,loss\n" +
                                                 raised + "rank 1 len(log_vars): 1 keys: loss\n")
                                    .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("rank 1 lacks a, unlike rank 0"), std::string::npos)
      << findings[0].summary;
}

TEST(ToldDifference, IsNotAnExceptionOfTheRankThatPrintsIt) {
  const auto log = [](const std::string& text) { return job().log(1, text).build(); };
  EXPECT_TRUE(asked("rank-raised", log(shapes("  - Process 0: [4]\n"))).empty());
  EXPECT_FALSE(asked("rank-raised", log(kHead + "ValueError: shape mismatches\n")).empty());
  EXPECT_TRUE(asked("mismatched-shape", log(kHead + "ValueError: shape mismatches\n")).empty());
}

TEST(ToldDifference, OfWhatZeroGathersQuotesBothRanks) {
  const auto findings = asked(
      "skipped-sharded-module",
      job()
          .log(2, kHead + "RuntimeError: disagreement between rank0 and rank2: rank0: [1, 2], "
                          "rank2: [1, 3]\n")
          .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("rank 2 gathers the parameters [1, 3]"), std::string::npos)
      << findings[0].summary;
}

}  // namespace
}  // namespace ddpdoctor::detectors
