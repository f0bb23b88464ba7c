// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4)
      .history(kAll, 1, 5)
      .all_reduce({0, 1, 2}, 6, 64, "step@/srv/train.py:8")
      .all_reduce(3, 6, 32, "step@/srv/train.py:8");
  builder.stack(kAll, in("all_reduce", "py:step@/srv/train.py:8"));
  return builder;
}

TEST(MismatchedShape, NamesTheRankWithTheOtherSize) {
  const Findings findings = asked("mismatched-shape", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{3}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].summary,
            "rank 3 passed [32] to all_reduce #6 of default_pg, but ranks 0-2 passed [64]");
}

TEST(MismatchedShape, ReadsTheBlockedCallsWhenThereAreNoRecords) {
  JobBuilder builder = job();
  builder.ranks(3).stack(
      {0, 2}, in("all_reduce", "py:step@/srv/train.py:8", "tensor=Tensor(4x2, float32)"));
  builder.stack(1, in("all_reduce", "py:step@/srv/train.py:8", "tensor=Tensor(3x2, float32)"));
  const Findings findings = asked("mismatched-shape", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(MismatchedShape, NamesNobodyInATie) {
  const Findings findings =
      asked("mismatched-shape", job().ranks(2).all_reduce(0, 1, 8).all_reduce(1, 1, 9).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
}

TEST(MismatchedShape, OfTwoNamesTheOneWhoseLineNeverPassedThisSizeBefore) {
  const std::string site = "step@/srv/train.py:8";
  for (const model::Rank guilty : {0, 1}) {
    JobBuilder builder = job();
    builder.ranks(2);
    for (std::int64_t sequence = 1; sequence <= 3; ++sequence) {
      builder.all_reduce(kAll, sequence, 64, site);
    }
    builder.all_reduce(1 - guilty, 4, 64, site).all_reduce(guilty, 4, 72, site);
    const Findings findings = asked("mismatched-shape", builder.build());
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].culprits, model::RankSet{guilty});
    builder.all_reduce(kAll, 5, 72, site);  // the line passes the value on
    EXPECT_TRUE(asked("mismatched-shape", builder.build()).at(0).culprits.empty());
  }
}

TEST(MismatchedShape, IsSilentOnEqualSizesAndOnUnequalParts) {
  EXPECT_TRUE(
      asked("mismatched-shape", job().ranks(4).history(kAll, 1, 5).all_reduce(kAll, 6, 64).build())
          .empty());
  EXPECT_TRUE(asked("mismatched-shape",
                    job()
                        .ranks(2)
                        .call(0, {.operation = "all_to_all", .shape = std::vector<std::int64_t>{4}})
                        .call(1, {.operation = "all_to_all", .shape = std::vector<std::int64_t>{6}})
                        .build())
                  .empty());
}

TEST(MismatchedShape, AccusesNoUnobservedRank) {
  JobBuilder builder = job();
  builder.ranks(2).all_reduce(0, 1, 8, "step@/srv/train.py:8").unobserved(1);
  EXPECT_TRUE(asked("mismatched-shape", builder.build()).empty());
}

TEST(MismatchedShape, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("mismatched-shape", told().build())),
            essence(asked("mismatched-shape", records_reversed(told().build()))));
}

TEST(MismatchedShape, NamesTheMetricThatARankNeverUpdated) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, R"(
import torchmetrics

class Eval:
    def step(self, boxes):
        if boxes:
            self.precision.update(boxes)

    def end(self):
        return self.precision.compute()
)");
  for (const model::Rank rank : {0, 1, 2}) {  // the number of dimensions of the next tensor
    builder.call(rank, {.operation = "all_gather",
                        .sequence = 2,
                        .site = site("Eval.end", "compute()"),
                        .shape = std::vector<std::int64_t>{rank == 2 ? 1 : 2},
                        .dtype = "int64"});
  }
  const Findings findings = asked("mismatched-shape", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_NE(findings[0].summary.find("`self.precision`"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("`boxes` was false on rank 2"), std::string::npos)
      << findings[0].fix;
}

TEST(MismatchedShape, KnowsSplitsThatDoNotMeet) {
  auto told = job()
                  .ranks(3)
                  .call(kAll, {.operation = "all_to_all_single",
                               .sequence = 1,
                               .site = "main@/srv/train.py:9",
                               .splits = std::vector<std::int64_t>{2, 2, 2}})
                  .build();
  for (model::CollectiveCall& call : told.collectives) {
    call.output_splits = std::vector<std::int64_t>{2, 2, 2};
  }
  EXPECT_TRUE(asked("mismatched-shape", told).empty());
  told.collectives.back().splits = std::vector<std::int64_t>{3, 1, 2};
  const auto findings = asked("mismatched-shape", told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({told.collectives.back().rank}));
}

TEST(MismatchedShape, LeavesSplitsThatDifferButMeetAlone) {
  auto told =
      job()
          .ranks(2)
          .call(0, {.operation = "all_to_all_single", .splits = std::vector<std::int64_t>{1, 3}})
          .call(1, {.operation = "all_to_all_single", .splits = std::vector<std::int64_t>{2, 4}})
          .build();
  told.collectives[0].output_splits = std::vector<std::int64_t>{1, 2};
  told.collectives[1].output_splits = std::vector<std::int64_t>{3, 4};
  EXPECT_TRUE(asked("mismatched-shape", told).empty());
}

TEST(MismatchedShape, SeesOneRankThatCutsItsInputOtherwise) {
  using Splits = std::vector<std::int64_t>;
  const auto told = [](const Splits& first, const Splits& last) {
    JobBuilder builder = job();
    builder.ranks(4).stack(kAll, kInBarrier);
    for (const model::Rank rank : {0, 1, 2, 3}) {
      builder.call(rank, {.operation = "all_to_all",
                          .splits = rank == 0   ? first
                                    : rank == 1 ? last
                                                : Splits{4, 4, 4, 4},
                          .state = model::CallState::kStarted});
    }
    return asked("mismatched-shape", builder.build());
  };
  const Findings findings = told({4, 4, 4, 4}, {4, 8, 4, 4});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_TRUE(told({1, 7, 4, 4}, {4, 8, 4, 4}).empty());  // uneven routing
}

TEST(MismatchedShape, SeesRanksThatPassAnotherTotalWhereSplitsAreUnknown) {
  const auto told = [](const std::vector<std::int64_t>& counts) {
    JobBuilder builder = job();
    builder.ranks(4).stack(kAll, kInBarrier);
    for (const model::Rank rank : {0, 1, 2, 3}) {
      builder.call(rank, {.operation = "all_to_all",
                          .count = counts[static_cast<std::size_t>(rank)],
                          .state = model::CallState::kStarted});
    }
    return asked("mismatched-shape", builder.build());
  };
  const Findings findings = told({64, 64, 64, 0});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].culprits, model::RankSet({3}));
  EXPECT_TRUE(told({64, 60, 58, 66}).empty());  // uneven routing
}

constexpr const char* kGlooSays =
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce "
    "fail "
    "at pair.cc:456] op.preamble.length <= op.nbytes. 192 vs 4. Received data size\n[rank2]: "
    "Traceback (most recent call last):\n[rank2]:   File \"/srv/train.py\", line 6, in mean_\n"
    "[rank2]: RuntimeError: [pair.cc:537] Read error: Connection reset by peer\n";

TEST(MismatchedShape, ReadsGloosWordsAndTheCallsThatFailed) {
  const auto told = job().ranks(3).killed(1, 6).ended().log({}, kGlooSays).build();
  const Findings findings = asked("mismatched-shape", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_TRUE(findings[0].summary.starts_with("rank 1 received 192 bytes"));
  EXPECT_EQ(findings[0].locations.at(0).line, 6);
  EXPECT_TRUE(asked("dead-rank", told).empty());
}

TEST(MismatchedShape, DoubtsGloosWordsWhileTheJobMoves) {
  EXPECT_TRUE(
      asked("mismatched-shape", job()
                                    .ranks(3)
                                    .stack(kAll, in("all_reduce", "py:step@/srv/train.py:8"))
                                    .log({}, kGlooSays)
                                    .progress(model::Progress::kMoving)
                                    .build())
          .empty());
}

/// Rank 0 aborted in its second recv; rank 1 sent this many elements in that call.
model::JobModel aborted_in_recv(std::int64_t sent, bool complete = true) {
  const auto message = [](std::string operation, std::int64_t sequence, std::int64_t count,
                          model::Rank peer, int line) {
    return tests::CallStory{.operation = std::move(operation),
                            .sequence = sequence,
                            .site = "run@/srv/stages.py:" + std::to_string(line),
                            .count = count,
                            .dtype = "float32",
                            .peer = peer,
                            .state = model::CallState::kCompleted};
  };
  tests::JobBuilder builder = tests::job();
  builder.ranks(2).killed(0, SIGABRT);
  builder.call(0, message("recv", 1, 96, 1, 15)).call(1, message("send", 1, 96, 0, 29));
  tests::CallStory last = message("recv", 2, 48, 1, 15);
  last.state = model::CallState::kEnqueued;
  builder.call(0, last).call(1, message("send", 2, sent, 0, 29));
  model::JobModel built = builder.build();
  built.history_complete = complete;
  return built;
}

TEST(MismatchedShape, AMessageLongerThanItsBufferAbortsTheReceiver) {
  const auto findings = asked("mismatched-shape", aborted_in_recv(96));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 15);
  EXPECT_EQ(findings[0].locations.at(1).line, 29);
  EXPECT_TRUE(asked("dead-rank", aborted_in_recv(96)).empty());
}

TEST(MismatchedShape, WhoAbortedInAMessageThatFitsDiedOfSomethingElse) {
  EXPECT_TRUE(asked("mismatched-shape", aborted_in_recv(48)).empty());
  EXPECT_EQ(asked("dead-rank", aborted_in_recv(48)).size(), 1u);
  EXPECT_TRUE(asked("mismatched-shape", aborted_in_recv(96, false)).empty())
      << "without all calls nobody knows which message met which buffer";
}

}  // namespace
}  // namespace ddpdoctor::detectors
