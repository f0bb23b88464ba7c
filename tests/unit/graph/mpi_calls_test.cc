// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/mpi_calls.h"

#include <gtest/gtest.h>

#include "collector/graph/history.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using tests::CallStory;
using tests::job;
using tests::JobBuilder;

constexpr const char* kInside = "native:opal_progress@libopen-pal.so.40 | native:PMPI_";

std::string in_mpi(const std::string& function) {
  return kInside + function + "@libmpi.so.40 | native:MPI_" + function +
         "@libddpdoctor_agent.so | py:exchange@/srv/train.py:5";
}

CallStory message(std::string operation, model::Rank peer, std::int64_t sequence,
                  model::CallState state) {
  return {.operation = std::move(operation), .sequence = sequence, .peer = peer, .state = state};
}

TEST(MpiCalls, AreCollectivesAndMessagesInTorchsWords) {
  const model::JobModel told =
      job().ranks(2).stack(0, in_mpi("Allreduce")).stack(1, in_mpi("Ssend")).state(0, 'R').build();
  const auto ranks = standings(told);
  EXPECT_EQ(ranks[0].activity, Activity::kCollective);
  ASSERT_TRUE(ranks[0].call);
  EXPECT_EQ(ranks[0].call->operation, "all_reduce");
  EXPECT_EQ(ranks[1].activity, Activity::kPointToPoint);
  ASSERT_TRUE(ranks[1].call);
  EXPECT_EQ(ranks[1].call->operation, "send");
}

TEST(MpiCalls, PollForOthersAndDoNotCompute) {
  const model::JobModel told = job().ranks(1).stack(0, in_mpi("Barrier")).state(0, 'R').build();
  EXPECT_FALSE(standings(told)[0].on_cpu);
}

TEST(MpiCalls, AreTheOutermostOneOnTheStack) {
  const model::JobModel told =
      job()
          .ranks(1)
          .stack(0, "native:PMPI_Barrier | native:MPI_Comm_free | py:f@/srv/train.py:5")
          .build();
  ASSERT_TRUE(standings(told)[0].call);
  EXPECT_EQ(standings(told)[0].call->operation, "comm_free");
}

TEST(MpiCalls, OfMpi4pyAreItsMethodAndNotWhatItIsMadeOf) {
  const std::string inside =
      "native:MPI_Recv | native:__pyx_f_6mpi4py_3MPI_PyMPI_reduce_intra | "
      "native:__pyx_pw_6mpi4py_3MPI_4Comm_293allreduce | "
      "py:main@/srv/train.py:5";
  const auto ranks = standings(job().ranks(1).stack(0, inside).build());
  EXPECT_EQ(ranks[0].activity, Activity::kCollective);
  ASSERT_TRUE(ranks[0].call);
  EXPECT_EQ(ranks[0].call->operation, "all_reduce");
}

TEST(MpiCalls, OfMpi4pyThatAreNoMethodOfTheirOwnAreThoseOfMpi) {
  const std::string inside =
      "native:MPI_Comm_split | native:__pyx_pw_6mpi4py_3MPI_4Comm_61Split | "
      "py:main@/srv/train.py:5";
  const auto ranks = standings(job().ranks(1).stack(0, inside).build());
  ASSERT_TRUE(ranks[0].call);
  EXPECT_EQ(ranks[0].call->operation, "comm_split");
}

TEST(MpiCalls, InWhichMostRanksWaitForSomethingUnknownAreACollective) {
  JobBuilder told = job().ranks(3);
  told.stack(0, in_mpi("Wait")).stack(1, in_mpi("Allreduce")).stack(2, in_mpi("Wait"));
  for (const Standing& one : standings(told.build())) {
    EXPECT_EQ(one.activity, Activity::kCollective);
  }
}

TEST(MpiCalls, InWhichFewWaitForSomethingUnknownAreMessages) {
  JobBuilder told = job().ranks(3);
  told.stack(0, in_mpi("Allreduce")).stack(1, in_mpi("Allreduce")).stack(2, in_mpi("Wait"));
  EXPECT_EQ(standings(told.build())[2].activity, Activity::kPointToPoint);
}

TEST(MpiCalls, InWhichAllWaitForSomethingUnknownAreMessages) {
  JobBuilder told = job().ranks(2);
  told.stack(0, in_mpi("Wait")).stack(1, in_mpi("Wait"));
  EXPECT_EQ(standings(told.build())[0].activity, Activity::kPointToPoint);
}

TEST(MpiCalls, ThatWaitStandInTheReceiveTheyWaitFor) {
  const model::JobModel told = job()
                                   .ranks(2)
                                   .stack(0, in_mpi("Waitall"))
                                   .call(0, message("send", 1, 1, model::CallState::kStarted))
                                   .call(0, message("recv", 1, 2, model::CallState::kStarted))
                                   .call(0, message("recv", 1, 3, model::CallState::kEnqueued))
                                   .build();
  const Standing standing = standings(told)[0];
  EXPECT_EQ(standing.activity, Activity::kPointToPoint);
  ASSERT_TRUE(standing.call);
  EXPECT_EQ(standing.call->operation, "recv");
  EXPECT_EQ(standing.call->peer, 1);
}

TEST(MpiCalls, ThatWaitForACollectiveAreInIt) {
  const model::JobModel told =
      job()
          .ranks(1)
          .stack(0, in_mpi("Wait"))
          .call(0, {.operation = "iall_reduce", .sequence = 4, .state = model::CallState::kStarted})
          .build();
  const Standing standing = standings(told)[0];
  EXPECT_EQ(standing.activity, Activity::kCollective);
  ASSERT_TRUE(standing.call);
  EXPECT_EQ(standing.call->sequence, 4);
}

TEST(MpiMessages, AreMatchedWhenTheOtherSideHasMadeAsMany) {
  JobBuilder builder = job();
  builder.ranks(2)
      .call(0, message("recv", 1, 1, model::CallState::kStarted))
      .call(1, message("send", 0, 1, model::CallState::kCompleted));
  const BlockedCall receive{.operation = "recv", .group = "0", .peer = 1};
  const model::JobModel one = builder.build();
  EXPECT_EQ(is_matched(History(one), 0, receive), true);
  builder.call(0, message("recv", 1, 2, model::CallState::kStarted));
  const model::JobModel two = builder.build();
  EXPECT_EQ(is_matched(History(two), 0, receive), false);
}

TEST(MpiMessages, OfAnotherTagMatchNothing) {
  model::JobModel told = job()
                             .ranks(2)
                             .call(0, message("recv", 1, 1, model::CallState::kStarted))
                             .call(1, message("send", 0, 1, model::CallState::kCompleted))
                             .build();
  for (model::CollectiveCall& call : told.collectives) {
    call.tag = call.operation == "recv" ? 6 : 5;
  }
  EXPECT_EQ(is_matched(History(told), 0, {.operation = "recv", .group = "0", .peer = 1, .tag = 6}),
            false);
}

TEST(MpiMessages, AreLeftOpenWhereSomebodyTakesFromAnyone) {
  model::JobModel told = job()
                             .ranks(2)
                             .call(0, message("recv", 1, 1, model::CallState::kCompleted))
                             .call(1, message("send", 0, 1, model::CallState::kStarted))
                             .build();
  for (model::CollectiveCall& call : told.collectives) {
    if (call.operation == "recv") {
      call.peer.reset();
    }
  }
  EXPECT_FALSE(is_matched(History(told), 1, {.operation = "send", .group = "0", .peer = 0}));
}

}  // namespace
}  // namespace ddpdoctor::graph
