// SPDX-License-Identifier: Apache-2.0
// A rank that polls the state of an NCCL call in a loop is in that call, at the call's line.
#include "collector/model/building/polled_calls.h"

#include <gtest/gtest.h>

#include "collector/graph/standing.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

Standing asking(const std::string& kind) {
  model::JobModel told =
      tests::job()
          .ranks(2)
          .call(0, {.operation = "comm_init", .sequence = 1, .time = 100})
          .stack(0, "py:ready@/srv/train.py:15")
          .waits(0, {.kind = kind, .target = "", .detail = "comm_init #1", .limit = {}})
          .build();
  model::CollectiveCall& call = told.collectives.front();
  call.state = model::CallState::kEnqueued;
  call.call_site = {.file = "/srv/train.py", .line = 21, .function = "init"};
  for (model::Process& process : told.observations.back().processes) {
    for (model::Thread& thread : process.threads) {
      if (thread.waits_on) {
        thread.waits_on->target = call.group;
      }
    }
  }
  return standings(told).at(0);
}

TEST(PolledCalls, AreWhereTheRankStands) {
  const Standing standing = asking(model::kPolledCall);
  EXPECT_EQ(standing.activity, Activity::kCollective);
  EXPECT_EQ(standing.call->operation, "comm_init");
  EXPECT_EQ(standing.user.line, 21);
  EXPECT_FALSE(standing.on_cpu);
}

TEST(PolledCalls, AreNotWhereAThreadIsThatDoesNotAsk) {
  EXPECT_NE(asking("timer").activity, Activity::kCollective);
}

}  // namespace
}  // namespace ddpdoctor::graph
