// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/field_stories.h"

namespace ddpdoctor::detectors {
namespace {

const FieldStory kStory{.kind = "mismatched-dtype",
                        .field = &tests::CallStory::dtype,
                        .usual = "float32",
                        .odd = "float16"};

TEST(MismatchedDtype, NamesTheRankThatDiffers) {
  kStory.expect_the_odd_rank_named();
}

TEST(MismatchedDtype, IsSaidAlsoOfAJobThatMoves) {
  kStory.expect_it_said_of_a_moving_job();
}

TEST(MismatchedDtype, IsSilentWhenAllAgreeOrOneIsUnknown) {
  kStory.expect_silence_when_all_agree_or_one_is_unknown();
}

TEST(MismatchedDtype, AccusesNoUnobservedRank) {
  kStory.expect_no_unobserved_rank_accused();
}

TEST(MismatchedDtype, DoesNotDependOnTheOrderOfRanks) {
  kStory.expect_the_order_of_ranks_not_to_matter();
}

TEST(MismatchedDtype, IsSaidOfABranchAfterWhichAllGoOnAlike) {
  JobBuilder builder = job();
  builder.ranks(2)
      .call(0, {.operation = "all_reduce",
                .sequence = 3,
                .site = "step@/srv/train.py:30",
                .dtype = "float32"})
      .call(1, {.operation = "all_reduce",
                .sequence = 3,
                .site = "log@/srv/train.py:8",
                .dtype = "int32"});
  for (const std::int64_t sequence : {2, 4, 5, 6}) {
    builder.call(kAll, {.operation = "all_reduce",
                        .sequence = sequence,
                        .site = "step@/srv/train.py:30",
                        .dtype = "float32"});
  }
  EXPECT_EQ(asked("mismatched-dtype", moving(builder.build())).size(), 1U);
}

TEST(MismatchedDtype, IsSilentWhereOneRankIsACallAhead) {
  JobBuilder builder = job();
  builder.ranks(3)
      .call({0, 1}, {.operation = "all_reduce",
                     .sequence = 3,
                     .site = "step@/srv/train.py:30",
                     .dtype = "float32"})
      .call({0, 1}, {.operation = "all_reduce",
                     .sequence = 4,
                     .site = "synced@/srv/meter.py:8",
                     .dtype = "float64"})
      .call(2, {.operation = "all_reduce",
                .sequence = 3,
                .site = "synced@/srv/meter.py:8",
                .dtype = "float64"});
  EXPECT_TRUE(asked("mismatched-dtype", builder.build()).empty());
}

constexpr const char* kMetric = R"(
from torchmetrics.classification import BinaryAUROC

def main():
    auc = BinaryAUROC(thresholds=None)
    for x, y, night in rows():
        if night:
            auc.update(x, y)
    print(rank, auc.compute())
)";

/// Two ranks gather under the line with `compute`; rank 0 passes `other`.
Findings of_metric(const std::string& text, const std::string& other, const std::string& compute) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, text);
  const std::string line = site("main", compute);
  builder.call(0, {.operation = "all_gather", .sequence = 6, .site = line, .dtype = other})
      .call(1, {.operation = "all_gather", .sequence = 6, .site = line, .dtype = "float32"});
  return asked("mismatched-dtype", builder.build());
}

TEST(MismatchedDtype, NamesTheMetricThatARankNeverUpdated) {
  const Findings findings = of_metric(kMetric, "int64", "auc.compute()");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("rank 1 had no values in `auc`"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("auc.update() (train.py:7"), std::string::npos) << findings[0].fix;
  EXPECT_EQ(findings[0].locations.back().line, 6);
}

TEST(MismatchedDtype, SeesNoEmptyMetricInTwoFloatsNorInAnUpdateThatAllMake) {
  const auto plain = [](const Findings& findings) {
    return findings.size() == 1U && findings[0].culprits.empty() &&
           findings[0].fix.find("Cast to the same type") != std::string::npos;
  };
  EXPECT_TRUE(plain(of_metric(kMetric, "float16", "auc.compute()")));
  EXPECT_TRUE(plain(of_metric(
      "import torchmetrics\n\ndef main():\n    auc.update(x, y)\n    print(auc.compute())\n",
      "int64", "auc.compute()")));
  EXPECT_TRUE(plain(of_metric(
      "def main():\n    if night:\n        auc.update(x, y)\n    print(auc.compute())\n", "int64",
      "auc.compute()")));  // another library's
}

}  // namespace
}  // namespace ddpdoctor::detectors
