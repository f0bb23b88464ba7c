// SPDX-License-Identifier: Apache-2.0
// Missing ranks from records alone: dumps without stacks, several groups.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

TEST(MissingRank, WhoWaitsForTheMissingIsNotMissing) {
  JobBuilder builder = job();
  builder.ranks(4);
  const auto calls = [&](model::RankSet ranks, std::int64_t number, model::CallState state) {
    builder.call(ranks, {.operation = "all_reduce", .sequence = number, .state = state});
  };
  calls({0, 1, 2, 3}, 5, model::CallState::kCompleted);
  calls({0, 1}, 6, model::CallState::kStarted);
  builder.call(
      3, {.operation = "recv", .sequence = 1, .peer = 2, .state = model::CallState::kStarted});
  model::JobModel told = builder.build();
  told.observations.clear();
  told.progress = model::Progress::kStill;
  const Findings findings = asked("missing-rank", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_TRUE(findings[0].summary.starts_with("rank 2 has not called")) << findings[0].summary;
}

TEST(MissingRank, WhoIsThroughWithTheCallHasJoinedIt) {
  const auto found = [](std::optional<model::CallState> of_rank_0) {
    JobBuilder builder = job();
    builder.ranks(3);
    const auto calls = [&](model::RankSet ranks, std::int64_t number, model::CallState state) {
      builder.call(ranks, {.operation = "all_reduce", .sequence = number, .state = state});
    };
    calls({0, 1, 2}, 4, model::CallState::kCompleted);
    calls({1, 2}, 5, model::CallState::kStarted);
    if (of_rank_0) {
      calls({0}, 5, *of_rank_0);
    }
    model::JobModel told = builder.build();
    told.observations.clear();
    told.progress = model::Progress::kStill;
    return asked("missing-rank", told);
  };
  EXPECT_EQ(found(std::nullopt).size(), 1U);
  EXPECT_TRUE(found(model::CallState::kCompleted).empty());
  EXPECT_TRUE(found(model::CallState::kFailed).empty());
}

/// As in NCCL's dumps: in two groups of the same kind, a rank is past its newest call.
Finding of_two_groups(std::int64_t number_of_second) {
  JobBuilder builder = job();
  builder.ranks(8).group("1", {0, 1, 2, 3}, "experts").group("2", {4, 5, 6, 7}, "experts");
  const auto calls = [&](model::RankSet ranks, const std::string& group, std::int64_t number,
                         model::CallState state) {
    builder.call(ranks,
                 {.operation = "all_to_all", .sequence = number, .group = group, .state = state});
  };
  calls({0, 1, 2, 3}, "1", 6, model::CallState::kCompleted);
  calls({0, 1, 3}, "1", 7, model::CallState::kStarted);
  calls({4, 5, 6, 7}, "2", number_of_second - 1, model::CallState::kCompleted);
  calls({4, 5, 6}, "2", number_of_second, model::CallState::kStarted);
  model::JobModel told = builder.build();
  told.observations.clear();
  told.progress = model::Progress::kStill;
  const Findings findings = asked("missing-rank", told);
  return findings.empty() ? Finding{} : findings[0];
}

TEST(MissingRank, TheHeadlineNamesWhoMissesInEveryGroup) {
  const Finding one = of_two_groups(7);
  EXPECT_EQ(one.culprits, (model::RankSet{2, 7}));
  EXPECT_EQ(one.summary,
            "ranks 2 and 7 have not called all_to_all #7 of experts; rank 2 finished its newest "
            "recorded call");
  EXPECT_EQ(one.fix,
            "Run `ddpdoctor attach PID` on the nodes of ranks 2 and 7 while it hangs, or start it "
            "with `ddpdoctor run -- …`: their stacks were not captured.");
  EXPECT_EQ(one.evidence.at(1).text, "ranks 4-6 called all_to_all #7 of experts (recorded calls)");
  const Finding two = of_two_groups(9);
  EXPECT_EQ(
      two.summary.find("rank 2 has not called all_to_all #7 of experts, rank 7 has not called "
                       "all_to_all #9 of experts; "),
      0U)
      << two.summary;
}

model::JobModel only_records(JobBuilder& builder) {
  model::JobModel told = builder.build();
  told.observations.clear();
  return told;
}

/// Four ranks in two groups of two; rank 3 has died. Rank 1 waits for it in the world group, so
/// rank 0 waits for rank 1.
JobBuilder lost_in_two_groups() {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl").group("1", {0, 1}, "tp").group("2", {2, 3}, "tp");
  builder.history(kAll, 1, 5);
  builder.call({0, 1, 2}, {.operation = "all_reduce",
                           .sequence = 6,
                           .site = "step@/srv/train.py:8",
                           .state = model::CallState::kStarted,
                           .time = 10});
  builder.call(2, {.operation = "all_gather",
                   .sequence = 1,
                   .group = "2",
                   .site = "step@/srv/train.py:9",
                   .state = model::CallState::kEnqueued,
                   .time = 11});
  return builder;
}

TEST(MissingRank, IsSilentWhileAnotherMemberOfTheGroupWorks) {
  JobBuilder builder = job();
  builder.ranks(3)
      .stack({0}, in("barrier", "py:main@/srv/train.py:12"))
      .stack({1},
             "native:futex_wait | py:acquire@/usr/lib/python3.11/threading.py:10 | "
             "py:hold@/srv/train.py:20")
      .python(2, kTrain, 7, "load")
      .computing(2)
      .progress(model::Progress::kStill);
  EXPECT_TRUE(nothing_likely(asked("missing-rank", builder.build())));
}

TEST(MissingRank, IsOneFindingForAllGroupsOfTheLostRank) {
  JobBuilder builder = lost_in_two_groups();
  const Findings findings = asked("missing-rank", only_records(builder));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{3});
  EXPECT_NE(findings[0].summary.find("not called all_reduce #6 of default_pg"), std::string::npos);
}

TEST(MissingRank, WhoIsHeldUpInAnotherGroupIsNoCulprit) {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl").group("1", {2, 3}, "tp").history(kAll, 1, 5);
  builder.call({0, 1}, {.operation = "all_reduce",
                        .sequence = 6,
                        .site = "step@/srv/train.py:8",
                        .state = model::CallState::kStarted,
                        .time = 12});
  builder.call(2, {.operation = "all_gather",
                   .sequence = 1,
                   .group = "1",
                   .site = "step@/srv/train.py:7",
                   .state = model::CallState::kStarted,
                   .time = 11});
  const Findings findings = asked("missing-rank", only_records(builder));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{3});
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 1, 2}));
}

TEST(MissingRank, IsToldByItsNewestCallWhenNoStackIsKnown) {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl").call(
      kAll, {.operation = "all_reduce", .site = "step@/srv/train.py:8"});
  builder.call({0, 1}, {.operation = "all_reduce", .sequence = 2, .site = "step@/srv/train.py:9"});
  const Findings findings = asked("missing-rank", only_records(builder));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 8);
  EXPECT_NE(findings[0].summary.find("finished its newest recorded call"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::detectors
