// SPDX-License-Identifier: Apache-2.0
// A loop at the end of an epoch that some ranks have left for the next epoch, in the first epoch.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// Rank 0 has more batches to validate on; the others are in the first step of the next epoch.
model::JobModel validates(const std::string& call) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, R"(
def main():
    for epoch in range(3):
        for x in train:
            loss(x).backward()
        for x in val_loader:
)" + ("            " + call) + R"(
)");
  const std::string gather = site("main", "dist.all_gather(");
  std::int64_t next = 1;
  for (; next <= 6; ++next) {
    builder.all_reduce(kAll, next, 8, site("main", "backward()"));
  }
  for (; next <= 11; ++next) {
    builder.call(kAll, {.operation = "all_gather", .sequence = next, .site = gather});
  }
  builder.all_reduce({1, 2}, next, 8, site("main", "backward()"))
      .stack(kAll, in_backward(at("main", "backward()")))
      .call(0, {.operation = "all_gather", .sequence = next, .site = gather})
      .stack(0, in("all_gather", at("main", "dist.all_gather(")));
  return builder.build();
}

TEST(PassesOfAValidation, AreOfTheLoopThatTheOthersLeft) {
  const Findings findings = asked("uneven-inputs", validates("dist.all_gather(parts, model(x))"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1, 2}));
  EXPECT_NE(findings[0].summary.find("for x in val_loader"), std::string::npos);
}

TEST(PassesOfAValidation, AreNotCountedWhereAComprehensionCalls) {
  for (const Finding& finding :
       asked("uneven-inputs", validates("y = [dist.all_gather(one, x) for one in parts]"))) {
    EXPECT_EQ(finding.summary.find("for x in val_loader"), std::string::npos);
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
