// SPDX-License-Identifier: Apache-2.0
// A rank that ended by itself has passed the line at which the others wait, if every run passes it.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

struct Story {
  std::string body = "            value = read(row)\n            dist.all_reduce(value)\n";
  std::string before = "";  // in the function that waits
  int status = 0;
};

/// Rank 1 has ended; the others wait in the barrier behind the loop.
model::JobModel told(const Story& story) {
  JobBuilder builder = job();
  builder.ranks(3).exited(1, story.status).progress(model::Progress::kStill);
  builder.source(kTrain,
                 "import contextlib, sys\nimport torch.distributed as dist\n"
                 "@contextlib.contextmanager\ndef lenient():\n    try:\n        yield\n"
                 "    except ValueError:\n        pass\n"
                 "def main():\n    rows = [str(n) for n in range(40)]\n" +
                     story.before + "    for row in rows:\n        with lenient():\n" + story.body +
                     "    dist.barrier()\n");
  builder.stack({0, 2}, in("barrier", at("main", "dist.barrier")));
  return builder.build();
}

TEST(ExitedPast, NamesTheContextThatEndsTheExceptionOfASkippedCall) {
  const Findings findings = asked("divergent-branch", told({}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
  EXPECT_NE(findings[0].summary.find("`with lenient()`"), std::string::npos);
}

TEST(ExitedPast, IsSilentWhereTheRankMayHaveEndedBeforeTheLine) {
  for (const Story& story :
       {Story{.before = "    if done(rows):\n        return\n"},
        Story{.before = "    if done(rows):\n        sys.exit(0)\n"},
        Story{.body = "            if read(row):\n                sys.exit(0)\n"
                      "            dist.all_reduce(row)\n"},
        Story{.status = 1}}) {
    EXPECT_TRUE(asked("divergent-branch", told(story)).empty()) << story.before << story.body;
  }
}

TEST(ExitedPast, IsSilentWithoutACallThatCanBeSkipped) {
  EXPECT_TRUE(asked("divergent-branch", told({.body = "            read(row)\n"})).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
