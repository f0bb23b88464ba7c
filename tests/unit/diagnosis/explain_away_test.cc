// SPDX-License-Identifier: Apache-2.0
#include "collector/diagnosis/explain_away.h"

#include <gtest/gtest.h>

namespace ddpdoctor::diagnosis {
namespace {

using detectors::Confidence;
using detectors::Detector;
using detectors::Effect;
using model::RankSet;

const Detector kMissing{.kind = "missing-rank",
                        .title = {},
                        .explanation = {},
                        .detect = nullptr,
                        .specificity = detectors::kPlainFact};
const Detector kMismatch{
    .kind = "mismatched-op", .title = {}, .explanation = {}, .detect = nullptr};
const Detector kWorker{.kind = "dataloader-worker-stuck",
                       .title = {},
                       .explanation = {},
                       .detect = nullptr,
                       .specificity = detectors::kPlaceOfCause};
const Detector kFork{.kind = "fork-after-openmp",
                     .title = {},
                     .explanation = {},
                     .detect = nullptr,
                     .specificity = detectors::kMechanism};
const Detector kNothing{.kind = "undetermined",
                        .title = {},
                        .explanation = {},
                        .detect = nullptr,
                        .specificity = detectors::kSaysNothing};
const Detector kLeaked{.kind = "shm-leaked",
                       .title = {},
                       .explanation = {},
                       .detect = nullptr,
                       .specificity = detectors::kPlaceOfCause,
                       .effect = Effect::kLeak};

Judged judged(const Detector& detector, RankSet culprits, RankSet waiting,
              Confidence confidence = Confidence::kLikely) {
  Judged out;
  out.detector = &detector;
  out.finding.kind = detector.kind;
  out.finding.culprits = std::move(culprits);
  out.finding.waiting = std::move(waiting);
  out.finding.confidence = confidence;
  return out;
}

/// A job without evidence, so that only the findings and the arrows given here decide.
class ExplainAway : public testing::Test {
 protected:
  std::vector<std::string> kinds_left(std::vector<Judged> all) const {
    auto kept = without_explained(std::move(all), examination_);
    put_in_order(kept, examination_);
    std::vector<std::string> kinds;
    for (const Judged& one : kept) {
      kinds.push_back(one.finding.kind);
    }
    return kinds;
  }

  model::JobModel job_;
  graph::Examination examination_{.job = job_, .standings = {}, .groups = {}, .waits = {}};
};

using Kinds = std::vector<std::string>;

TEST_F(ExplainAway, TwoWordsAboutOneTracebackOfALogAreOne) {
  Judged fine = judged(kWorker, {}, {});
  Judged plain = judged(kMissing, {}, {});
  fine.finding.locations.emplace_back().file = "/srv/train.py";
  fine.finding.locations.front().line = 26;
  plain.finding.locations = fine.finding.locations;
  EXPECT_TRUE(explains(fine, plain, examination_));
  EXPECT_FALSE(explains(plain, fine, examination_));
  plain.finding.locations.front().line = 30;
  EXPECT_FALSE(explains(fine, plain, examination_));
}

TEST_F(ExplainAway, OneCauseInSeveralGroupsIsOneFinding) {
  const auto at = [](RankSet culprits, RankSet waiting, int line) {
    Judged one = judged(kMismatch, std::move(culprits), std::move(waiting));
    for (const int each : {10, line}) {
      one.finding.locations.emplace_back().file = "/srv/train.py";
      one.finding.locations.back().line = each;
    }
    return one;
  };
  EXPECT_EQ(kinds_left({at({0, 2}, {1, 3}, 30), at({0}, {1}, 30), at({2}, {3}, 30)}),
            Kinds({"mismatched-op"}));
  EXPECT_EQ(kinds_left({at({0, 2}, {1, 3}, 30), at({2}, {3}, 40)}).size(), 2U);
  EXPECT_EQ(kinds_left({at({0}, {1}, 30), at({2}, {3}, 30)}).size(), 2U);
}

TEST_F(ExplainAway, AFinerCauseOnTheSameRankReplacesThePlainFact) {
  EXPECT_EQ(kinds_left({judged(kMissing, {1}, {0, 2}, Confidence::kCertain),
                        judged(kWorker, {1}, {0, 2}), judged(kFork, {1}, {0, 2})}),
            Kinds({"fork-after-openmp"}));
}

TEST_F(ExplainAway, ARankThatMerelyWaitsIsNotAccused) {
  EXPECT_EQ(kinds_left({judged(kMissing, {0}, {2}), judged(kWorker, {1}, {0, 2})}),
            Kinds({"dataloader-worker-stuck"}));
}

TEST_F(ExplainAway, ALikelyCauseDoesNotOverruleACertainOneOnAnotherRank) {
  EXPECT_EQ(kinds_left({judged(kMismatch, {2}, {0, 1}, Confidence::kCertain),
                        judged(kWorker, {0}, {1, 2})}),
            Kinds({"mismatched-op", "dataloader-worker-stuck"}));
}

TEST_F(ExplainAway, ACauseWithoutACulpritClearsThoseWhoWait) {
  EXPECT_EQ(kinds_left({judged(kWorker, {}, {0, 1, 2, 3}, Confidence::kCertain),
                        judged(kMismatch, {0}, {1}, Confidence::kCertain)}),
            Kinds({"dataloader-worker-stuck"}));
}

TEST_F(ExplainAway, TwoIndependentCausesBothStay) {
  EXPECT_EQ(kinds_left({judged(kWorker, {1}, {0}), judged(kFork, {2}, {0})}),
            Kinds({"fork-after-openmp", "dataloader-worker-stuck"}));
}

TEST_F(ExplainAway, AResemblanceExplainsNothingThatIsLikely) {
  EXPECT_EQ(
      kinds_left({judged(kMissing, {1}, {0}), judged(kWorker, {1}, {0}, Confidence::kPossible)}),
      Kinds({"missing-rank", "dataloader-worker-stuck"}));
}

TEST_F(ExplainAway, FollowsTheArrowsToWhereTheWaitingEnds) {
  examination_.waits.add(
      {.from = "rank:0", .to = "rank:1", .kind = graph::EdgeKind::kCollective, .why = {}});
  examination_.waits.add(
      {.from = "rank:1", .to = "pid:77", .kind = graph::EdgeKind::kProcess, .why = {}});
  auto child = judged(kFork, {}, {}, Confidence::kCertain);
  child.finding.details["pid"] = std::int64_t{77};
  child.finding.culprits = RankSet({3});
  EXPECT_EQ(kinds_left({judged(kMissing, {1}, {0}), child}), Kinds({"fork-after-openmp"}));
}

TEST_F(ExplainAway, AnyFindingReplacesUndetermined) {
  EXPECT_EQ(
      kinds_left({judged(kNothing, {}, {}), judged(kWorker, {1}, {0}, Confidence::kPossible)}),
      Kinds({"dataloader-worker-stuck"}));
}

TEST_F(ExplainAway, ALeakStandsBesideAHangAndAfterIt) {
  EXPECT_EQ(
      kinds_left({judged(kLeaked, {1}, {}, Confidence::kCertain), judged(kMissing, {1}, {0})}),
      Kinds({"missing-rank", "shm-leaked"}));
  EXPECT_EQ(kinds_left({judged(kLeaked, {}, {}, Confidence::kCertain), judged(kNothing, {}, {})}),
            Kinds({"undetermined", "shm-leaked"}));
}

TEST_F(ExplainAway, SureComesBeforeUnsure) {
  EXPECT_EQ(kinds_left({judged(kFork, {1}, {}, Confidence::kLikely),
                        judged(kWorker, {2}, {}, Confidence::kCertain)}),
            Kinds({"dataloader-worker-stuck", "fork-after-openmp"}));
}

}  // namespace
}  // namespace ddpdoctor::diagnosis
