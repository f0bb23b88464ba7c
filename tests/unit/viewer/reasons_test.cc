// SPDX-License-Identifier: Apache-2.0
#include "viewer/reasons.h"

#include <gtest/gtest.h>

namespace ddpdoctor::viewer {
namespace {

using detectors::Evidence;
using detectors::Finding;
using detectors::Shown;

/// Rank 0 at train.py:9, which is in the first line of the finding.
Finding finding_with(Evidence evidence) {
  Finding finding;
  finding.summary = "rank 0 called broadcast (train.py:9)";
  finding.locations.push_back({.rank = 0,
                               .ranks = {},
                               .file = "/srv/train.py",
                               .line = 9,
                               .function = "step",
                               .note = "rank 0 is here, in broadcast"});
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Evidence standing(std::string file, int line, std::string words) {
  return {.rank = 0,
          .text = "rank 0 is in " + words,
          .shown = Shown{.file = std::move(file), .line = line, .words = std::move(words)}};
}

using Words = std::vector<std::string>;

TEST(Reasons, LeaveOutWhatTheLinesShow) {
  EXPECT_EQ(reasons(finding_with(standing("/srv/train.py", 9, "broadcast"))), Words{});
  EXPECT_EQ(reasons(finding_with(standing("", 0, "broadcast"))), Words{})
      << "a dump without lines: the words are enough";
}

TEST(Reasons, KeepADifferentLineOrCall) {
  EXPECT_EQ(reasons(finding_with(standing("/srv/train.py", 10, "broadcast"))),
            Words{"rank 0 is in broadcast"});
  EXPECT_EQ(reasons(finding_with(standing("/srv/train.py", 9, "#7 of default_pg"))),
            Words{"rank 0 is in #7 of default_pg"});
}

TEST(Reasons, KeepEveryFactThatIsNotOnlyAPlace) {
  EXPECT_EQ(reasons(finding_with({.rank = 0, .text = "log: broadcast timed out"})),
            Words{"rank 0: log: broadcast timed out"});
}

TEST(Reasons, ACallThatAFactBeforeItNamedIsNotSaidAgain) {
  Finding finding = finding_with({.rank = std::nullopt, .text = "call #7 of default_pg is …"});
  finding.evidence.push_back(standing("/srv/train.py", 9, "#7 of default_pg"));
  EXPECT_EQ(reasons(finding), Words{"call #7 of default_pg is …"});
}

TEST(Reasons, WhatIsTrueOfSeveralRanksIsSaidOnce) {
  Finding finding = finding_with({.rank = 0, .text = "log: out of memory"});
  finding.evidence.push_back({.rank = 0, .text = "rank 0 is asleep"});
  finding.evidence.push_back({.rank = 1, .text = "log: out of memory"});
  finding.evidence.push_back({.rank = 1, .text = "rank 1 is asleep"});
  finding.evidence.push_back({.rank = 1, .text = "rank 1 has exited"});
  EXPECT_EQ(reasons(finding), (Words{"ranks 0 and 1: log: out of memory",
                                     "ranks 0 and 1 are asleep", "rank 1 has exited"}));
}

}  // namespace
}  // namespace ddpdoctor::viewer
