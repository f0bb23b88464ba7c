// SPDX-License-Identifier: Apache-2.0
// A job that was restarted and then found no peer to connect to.
#include <gtest/gtest.h>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

std::string raised(int line, const std::string& exception) {
  return "Traceback (most recent call last):\n  File \"/srv/train.py\", line " +
         std::to_string(line) + ", in main\n" + exception + "\n";
}

const std::string kRefused = "RuntimeError: Gloo connectFullMesh failed with [pair.cc:152] refused";
const std::string kOwn = "KeyError: 'embedding'";

/// What ranks 0 and 2 wrote in the current attempt, and rank 2 in a previous one.
Findings told(const std::string& first, const std::string& second, const std::string& former) {
  tests::JobBuilder builder = tests::job();
  builder.ranks(3).exited(tests::kAll, 1).ended();
  builder.log(0, first).log(2, second);
  if (!former.empty()) {
    builder.fact("former-output", {{"text", former}}, 2);
  }
  return asked("rank-raised", builder.build());
}

TEST(FormerLife, IsWhatTheNextOneFoundNobodyOf) {
  const Findings findings = told(raised(5, kRefused), "", raised(9, kOwn) + raised(9, kOwn));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

TEST(FormerLife, IsNotAskedWhereThePresentOneTells) {
  const Findings findings = told(raised(5, kRefused), raised(7, "ValueError: x"), raised(9, kOwn));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
}

TEST(FormerLife, IsSilentIfItFoundNobodyEither) {
  for (const std::string& former : {std::string(), raised(9, kRefused)}) {
    for (const Finding& finding : told(raised(5, kRefused), "", former)) {
      EXPECT_FALSE(finding.culprits.contains(0));
    }
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
