// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/live.h"

#include <gtest/gtest.h>

#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using tests::job;
using tests::kAll;

constexpr const char* kAllReduce =
    "native:epoll_wait@libc.so.6 | "
    "py:all_reduce@/opt/site-packages/torch/distributed/distributed_c10d.py:3000 | "
    "py:step@/srv/train.py:8";

TEST(LiveView, TellsWhoJoinedAndWhoIsMissing) {
  const LiveView view = live_view(job()
                                      .ranks(4)
                                      .stack(kAll, kAllReduce)
                                      .stack(2, "py:evaluate@/srv/train.py:20")
                                      .history(kAll, 1, 8)
                                      .all_reduce({0, 1, 3}, 9)
                                      .build());
  ASSERT_EQ(view.ranks.size(), 4U);
  EXPECT_EQ(view.ranks[0].place, "train.py:8 in step");
  EXPECT_NE(view.ranks[0].doing.find("all_reduce #9"), std::string::npos) << view.ranks[0].doing;
  ASSERT_FALSE(view.groups.empty());
  EXPECT_EQ(view.groups[0].sequence, 9);
  EXPECT_EQ(view.groups[0].joined.ranges(), "0-1,3");
  EXPECT_EQ(view.groups[0].missing.ranges(), "2");
  ASSERT_EQ(view.waits.size(), 1U);
  EXPECT_TRUE(view.waits[0].starts_with("ranks 0-1,3 wait for rank 2: all_reduce #9"))
      << view.waits[0];
  EXPECT_EQ(view.calls, 35U);
}

TEST(LiveView, TellsWhichRanksCalledWhichOperation) {
  const LiveView view = live_view(job()
                                      .ranks(3)
                                      .stack(kAll, kAllReduce)
                                      .history(kAll, 1, 8)
                                      .barrier({0, 1}, 9)
                                      .all_reduce(2, 9)
                                      .build());
  ASSERT_FALSE(view.groups.empty());
  ASSERT_EQ(view.groups[0].operations.size(), 2U);
  EXPECT_EQ(view.groups[0].operations.at("barrier").ranges(), "0-1");
  EXPECT_EQ(view.groups[0].operations.at("all_reduce").ranges(), "2");
  EXPECT_TRUE(live_view(job().ranks(2).history(kAll, 1, 8).build()).groups[0].operations.empty());
}

TEST(LiveView, LagIsTheMeanDelayBehindTheFirst) {
  model::JobModel told = job().ranks(2).stack(kAll, kAllReduce).history(kAll, 1, 4).build();
  for (model::CollectiveCall& call : told.collectives) {
    call.time = 100.0 * static_cast<double>(call.sequence) + (call.rank == 1 ? 0.5 : 0);
  }
  const LiveView view = live_view(told);
  ASSERT_EQ(view.ranks.size(), 2U);
  EXPECT_NEAR(view.ranks[0].lag.value_or(-1), 0, 1e-9);
  EXPECT_NEAR(view.ranks[1].lag.value_or(-1), 0.5, 1e-9);
}

TEST(LiveView, OfAnEmptyModelIsEmpty) {
  const LiveView view = live_view({});
  EXPECT_TRUE(view.ranks.empty());
  EXPECT_TRUE(view.groups.empty());
  EXPECT_EQ(view.calls, 0U);
}

}  // namespace
}  // namespace ddpdoctor::graph
