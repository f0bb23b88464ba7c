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

using Indexes = std::vector<std::size_t>;

TEST(NewEvidence, LeavesOutWhatTheLinesShow) {
  EXPECT_EQ(new_evidence(finding_with(standing("/srv/train.py", 9, "broadcast"))), Indexes{});
  EXPECT_EQ(new_evidence(finding_with(standing("", 0, "broadcast"))), Indexes{})
      << "a dump without lines: the words are enough";
}

TEST(NewEvidence, KeepsADifferentLineOrCall) {
  EXPECT_EQ(new_evidence(finding_with(standing("/srv/train.py", 10, "broadcast"))), Indexes{0});
  EXPECT_EQ(new_evidence(finding_with(standing("/srv/train.py", 9, "#7 of default_pg"))),
            Indexes{0});
}

TEST(NewEvidence, KeepsEveryFactThatIsNotOnlyAPlace) {
  EXPECT_EQ(new_evidence(finding_with({.rank = 0, .text = "log: broadcast timed out"})),
            Indexes{0});
}

TEST(NewEvidence, ACallThatAFactBeforeItNamedIsNotSaidAgain) {
  Finding finding = finding_with({.rank = std::nullopt, .text = "call #7 of default_pg is …"});
  finding.evidence.push_back(standing("/srv/train.py", 9, "#7 of default_pg"));
  EXPECT_EQ(new_evidence(finding), Indexes{0});
}

}  // namespace
}  // namespace ddpdoctor::viewer
