// SPDX-License-Identifier: Apache-2.0
// Every job built by the tests of this program is diagnosed twice more: listed in reverse order,
// and with its ranks renumbered. Each detector must report the same, about the corresponding ranks.
#include <algorithm>

#include <gtest/gtest.h>

#include "collector/detectors/detector.h"
#include "tests/support/shuffle.h"
#include "tests/support/told_jobs.h"

namespace ddpdoctor::detectors {
namespace {

/// Kind, confidence and ranks of every finding, in any order; ranks renumbered if `world` > 0.
std::vector<std::string> said(const model::JobModel& job, int world) {
  const graph::Examination examination = graph::examine(job);
  std::vector<std::string> out;
  for (const Detector* detector : catalog()) {
    for (const Finding& finding : detector->detect(examination)) {
      const auto name = [world](const model::RankSet& ranks) {
        return (world > 0 ? tests::renumbered(ranks, world) : ranks).ranges();
      };
      out.push_back(finding.kind + " " + std::string(confidence_name(finding.confidence)) + " of " +
                    name(finding.culprits) + " waiting " + name(finding.waiting));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Shuffled : public testing::Environment {
 public:
  void TearDown() override {
    const auto all = tests::told_jobs();
    for (const tests::ToldJob& told : all) {
      const auto before = said(told.job, 0);
      EXPECT_EQ(said(tests::listed_backwards(told.job), 0), before)
          << told.test << " depends on the order in which things are listed";
      if (told.job.world_size && !tests::numbers_matter(told.job)) {
        EXPECT_EQ(said(tests::renumbered(told.job), *told.job.world_size), before)
            << told.test << " depends on the numbers of ranks";
      }
    }
  }
};

// Owned by the framework. Runs after the last test of the program.
const testing::Environment* const kShuffled = testing::AddGlobalTestEnvironment(new Shuffled);

TEST(EveryStory, IsToldAgainAfterTheLastTest) {
  EXPECT_NE(kShuffled, nullptr);
}

}  // namespace
}  // namespace ddpdoctor::detectors
