// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/divergence.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "collector/graph/examination.h"
#include "collector/graph/members.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using tests::job;
using tests::kAll;

const std::string kBarrier = "py:barrier@/v/torch/distributed/distributed_c10d.py:1 | ";
const std::string kReduce = "py:all_reduce@/v/torch/distributed/distributed_c10d.py:1 | ";

TEST(Divergence, IsTheLowestSequenceWithAnotherOperation) {
  const model::JobModel told =
      job().ranks(4).history(kAll, 1, 9).barrier(2, 10).all_reduce({0, 1, 3}, 10).build();
  const Examination examination = examine(told);
  ASSERT_EQ(examination.groups.size(), 1U);
  const auto& divergence = examination.groups[0].first_divergence;
  ASSERT_TRUE(divergence.has_value());
  EXPECT_EQ(divergence->sequence, 10);
  EXPECT_EQ(divergence->about, Disagreement::kOperation);
  EXPECT_EQ(divergence->calls[0].ranks, (model::RankSet{0, 1, 3}));
  EXPECT_EQ(divergence->calls[1].ranks, (model::RankSet{2}));
}

TEST(Divergence, PutsACallOfUnknownKindOnNoSideOfAFew) {
  for (const model::Rank unknown : {0, 1}) {
    const model::Rank odd = 1 - unknown;
    model::JobModel told =
        job().ranks(4).history(kAll, 1, 9).barrier(odd, 10).all_reduce({unknown, 2, 3}, 10).build();
    for (model::CollectiveCall& call : told.collectives) {
      if (call.sequence == 10 && call.rank == unknown) {
        call.operation.clear();
      }
    }
    const Examination examination = examine(told);
    const auto& divergence = examination.groups.at(0).first_divergence;
    ASSERT_TRUE(divergence.has_value());
    EXPECT_EQ(divergence->about, Disagreement::kOperation);
    EXPECT_EQ(divergence->calls[0].ranks, (model::RankSet{unknown, 2, 3}));
    EXPECT_EQ(divergence->calls[1].ranks, (model::RankSet{odd}));
  }
}

TEST(Divergence, NamesRanksThatNeverCame) {
  const model::JobModel told = job().ranks(3).history(kAll, 1, 4).all_reduce({0, 2}, 5).build();
  const Examination examination = examine(told);
  const auto& divergence = examination.groups.at(0).first_divergence;
  ASSERT_TRUE(divergence.has_value());
  EXPECT_EQ(divergence->about, Disagreement::kMissing);
  EXPECT_EQ(divergence->calls.back().ranks, (model::RankSet{1}));
  EXPECT_FALSE(divergence->calls.back().call.has_value());
}

TEST(Divergence, IsAbsentWhenAllAgree) {
  const model::JobModel told = job().ranks(4).history(kAll, 1, 50).build();
  EXPECT_FALSE(examine(told).groups.at(0).first_divergence.has_value());
}

TEST(Divergence, ComparesOnlyFromTheLargestFirstRecordOn) {
  const model::JobModel told = job().ranks(2).history(0, 1, 300).history(1, 45, 300).build();
  const Examination examination = examine(told);
  EXPECT_FALSE(examination.groups.at(0).first_divergence.has_value());
  EXPECT_EQ(examination.groups.at(0).progress_of(1)->first_known, 45);
}

TEST(Divergence, SeesTwoRanksInDifferentCallsOfWhichAThirdHasNoRecord) {
  const model::JobModel told =
      job().ranks(3).barrier(2, 696).all_reduce({0}, 696).all_reduce({1}, 697).build();
  const Examination examination = examine(told);
  const auto& divergence = examination.groups.at(0).first_divergence;
  ASSERT_TRUE(divergence.has_value());
  EXPECT_EQ(divergence->sequence, 696);
  EXPECT_EQ(divergence->about, Disagreement::kOperation);
}

TEST(Divergence, SeesARankBehindTheOthersWholeRing) {
  const model::JobModel told = job().ranks(2).history(0, 500, 600).history(1, 100, 200).build();
  const Examination examination = examine(told);
  const auto& divergence = examination.groups.at(0).first_divergence;
  ASSERT_TRUE(divergence.has_value());
  EXPECT_EQ(divergence->about, Disagreement::kMissing);
  EXPECT_EQ(divergence->calls.back().ranks, (model::RankSet{1}));
}

TEST(Divergence, KeepsEveryKindOfDisagreement) {
  const model::JobModel told =
      job()
          .ranks(2)
          .call(0, {.operation = "all_reduce", .sequence = 1, .reduce_op = "sum"})
          .call(1, {.operation = "all_reduce", .sequence = 1, .reduce_op = "max"})
          .barrier(0, 2)
          .all_reduce(1, 2)
          .build();
  const Examination examination = examine(told);
  const GroupView& view = examination.groups.at(0);
  EXPECT_EQ(view.first_divergence->about, Disagreement::kReduceOp);
  ASSERT_NE(view.disagreement(Disagreement::kOperation), nullptr);
  EXPECT_EQ(view.disagreement(Disagreement::kOperation)->sequence, 2);
}

TEST(Divergence, LeavesUnequalPartsOfAScatterAlone) {
  const model::JobModel told =
      job()
          .ranks(2)
          .call(0, {.operation = "scatter", .shape = std::vector<std::int64_t>{8}})
          .call(1, {.operation = "scatter", .shape = std::vector<std::int64_t>{4}})
          .build();
  EXPECT_FALSE(examine(told).groups.at(0).first_divergence.has_value());
}

TEST(Divergence, WalksBackToACallThatOnlyPairedByOrder) {
  // Rank 0's own barrier at line 58 was matched with the others' barrier at 65; everything after it
  // is off by one.
  const model::JobModel told = job()
                                   .ranks(3)
                                   .history(kAll, 1, 4, "all_reduce", "step@/srv/t.py:50")
                                   .barrier(0, 5, "main@/srv/t.py:58")
                                   .barrier({1, 2}, 5, "main@/srv/t.py:65")
                                   .barrier(0, 6, "main@/srv/t.py:65")
                                   .all_reduce({1, 2}, 6, 8, "step@/srv/t.py:50")
                                   .build();
  const Examination examination = examine(told);
  const GroupView& view = examination.groups.at(0);
  EXPECT_EQ(view.first_divergence->sequence, 6);
  ASSERT_TRUE(view.first_site_divergence.has_value());
  EXPECT_EQ(view.first_site_divergence->sequence, 5);
  EXPECT_EQ(shift_between(examination.history, "0", 5, 0, 1), Shift::kExtra);
  EXPECT_EQ(shift_between(examination.history, "0", 5, 1, 0), Shift::kSkipped);
}

/// A layer reduces; on all ranks line 39 runs the model, on rank 0 also line 20.
model::JobModel with_a_forward_of_rank_0(bool others_run_another) {
  const std::string layer = "forward@/srv/layers.py:19 | ";
  tests::JobBuilder builder = job();
  builder.ranks(3);
  std::int64_t sequence = 0;
  const auto call = [&](const tests::Who& who, const std::string& through, std::int64_t count) {
    builder.call(who, {.operation = "all_reduce",
                       .sequence = ++sequence,
                       .site = through + " | main@/srv/train.py:60",
                       .count = count});
  };
  for (int step = 0; step < 4; ++step) {
    call(kAll, layer + "run@/srv/train.py:39", 16);
    call(kAll, "run@/srv/train.py:39", 146);
  }
  call(0, layer + "preview@/srv/train.py:20", 16);  // #9
  call(0, layer + "run@/srv/train.py:39", 16);
  sequence = 8;
  if (others_run_another) {
    call({1, 2}, layer + "summary@/srv/train.py:25", 16);
    call({1, 2}, layer + "run@/srv/train.py:39", 8);
  } else {
    call({1, 2}, layer + "run@/srv/train.py:39", 16);
    call({1, 2}, "run@/srv/train.py:39", 146);
  }
  return builder.build();
}

TEST(Divergence, WalksBackToACallOfTheSameLineThatWasReachedThroughAnother) {
  const model::JobModel told = with_a_forward_of_rank_0(false);
  const GroupView view = examine(told).groups.at(0);
  ASSERT_TRUE(view.first_divergence.has_value());
  EXPECT_EQ(view.first_divergence->sequence, 10);
  ASSERT_TRUE(view.first_site_divergence.has_value());
  EXPECT_EQ(view.first_site_divergence->sequence, 9);
  EXPECT_EQ(view.first_site_divergence->calls.at(1).ranks, (model::RankSet{0}));
  const model::JobModel replaced = with_a_forward_of_rank_0(true);
  EXPECT_FALSE(examine(replaced).groups.at(0).first_site_divergence.has_value());
}

TEST(Divergence, DoesNotMistakeTwoBranchesWithOneCallEachForAShift) {
  const model::JobModel told = job()
                                   .ranks(2)
                                   .all_reduce(0, 1, 8, "a@/srv/t.py:10")
                                   .all_reduce(1, 1, 8, "b@/srv/t.py:12")
                                   .history(kAll, 2, 4, "all_reduce", "step@/srv/t.py:50")
                                   .barrier(0, 5, "m@/srv/t.py:60")
                                   .all_reduce(1, 5, 8, "step@/srv/t.py:50")
                                   .build();
  EXPECT_FALSE(examine(told).groups.at(0).first_site_divergence.has_value());
}

TEST(Divergence, DoesNotDependOnTheOrderOfRecords) {
  model::JobModel told =
      job().ranks(4).history(kAll, 1, 9).barrier(2, 10).all_reduce({0, 1, 3}, 10).build();
  std::reverse(told.collectives.begin(), told.collectives.end());
  const Examination examination = examine(told);
  const auto& divergence = examination.groups.at(0).first_divergence;
  ASSERT_TRUE(divergence.has_value());
  EXPECT_EQ(divergence->calls[1].ranks, (model::RankSet{2}));
}

TEST(Progress, CountsTheCallARankStandsInAsNotCompleted) {
  const model::JobModel told = job()
                                   .ranks(2)
                                   .history(kAll, 1, 4)
                                   .barrier(0, 5)
                                   .stack(0, kBarrier + "py:f@/srv/t.py:3")
                                   .python(1, "/srv/t.py", 9, "g")
                                   .build();
  const Examination examination = examine(told);
  EXPECT_EQ(examination.groups.at(0).progress_of(0)->enqueued, 5);
  EXPECT_EQ(examination.groups.at(0).progress_of(0)->completed, 4);
  EXPECT_EQ(examination.groups.at(0).progress_of(1)->completed, 4);
}

TEST(WaitFor, PointsFromTheWaitingToTheMissing) {
  const model::JobModel told = job()
                                   .ranks(3)
                                   .history(kAll, 1, 4)
                                   .all_reduce({0, 1}, 5)
                                   .stack({0, 1}, kReduce + "py:f@/srv/t.py:3")
                                   .python(2, "/srv/t.py", 9, "g")
                                   .build();
  const Examination examination = examine(told);
  EXPECT_EQ(examination.waits.sinks(), std::vector<std::string>{"rank:2"});
  EXPECT_EQ(examination.waits.ends_of_waiting("rank:0"), std::vector<std::string>{"rank:2"});
  EXPECT_EQ(examination.waits.from("rank:0").at(0)->why, "all_reduce #5 of default_pg");
}

TEST(WaitFor, FindsCyclesOverGroups) {
  const model::JobModel told =
      job()
          .ranks(2)
          .group("1", {0, 1}, "tp")
          .group("2", {0, 1}, "dp")
          .stack(0,
                 "py:all_reduce{group=<ProcessGroup 1>}@/v/torch/distributed/distributed_c10d.py:1 "
                 "| py:f@/srv/t.py:3")
          .stack(1,
                 "py:all_reduce{group=<ProcessGroup 2>}@/v/torch/distributed/distributed_c10d.py:1 "
                 "| py:f@/srv/t.py:4")
          .build();
  const Examination examination = examine(told);
  const auto& cycles = examination.waits.cycles();
  ASSERT_EQ(cycles.size(), 1U);
  EXPECT_EQ(
      cycle_sentence(examination.waits, cycles[0]),
      "rank 0 waits for rank 1 (all_reduce of tp), rank 1 waits for rank 0 (all_reduce of dp)");
}

TEST(WaitFor, AGroupOfUnknownMembersIsThoseWhoCallInIt) {
  const model::JobModel told =
      job()
          .ranks(4)
          .group("2", {}, "dp")
          .history(kAll, 1, 5)
          .call({2, 3},
                {.operation = "all_reduce", .group = "2", .state = model::CallState::kCompleted})
          .call(3, {.operation = "broadcast",
                    .sequence = 2,
                    .group = "2",
                    .state = model::CallState::kEnqueued})
          .build();
  model::JobModel dumps = told;
  dumps.observations.clear();
  const Examination examination = examine(dumps);
  ASSERT_NE(examination.group("2"), nullptr);
  EXPECT_EQ(members_of(*examination.group("2"), examination.standings), (model::RankSet{2, 3}));
  ASSERT_EQ(examination.waits.from("rank:3").size(), 1U);
  EXPECT_EQ(examination.waits.from("rank:3")[0]->to, "rank:2");
}

TEST(WaitFor, TakesARanksMainThreadForTheRank) {
  const model::JobModel told =
      job()
          .ranks(1)
          .python(0, "/srv/t.py", 3, "f")
          .waits(0, {.kind = "mutex", .target = "thread:1001", .detail = ""})
          .thread(0, {.stack = "py:g@/srv/t.py:9"})
          .build();
  const Examination examination = examine(told);
  ASSERT_EQ(examination.waits.edges().size(), 1U);
  EXPECT_EQ(examination.waits.edges()[0].from, "rank:0");
  EXPECT_EQ(examination.waits.edges()[0].to, "thread:1001");
}

}  // namespace
}  // namespace ddpdoctor::graph
