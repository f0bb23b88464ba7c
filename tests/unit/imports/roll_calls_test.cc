// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/roll_calls.h"

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

std::vector<const model::Fact*> roll_calls(const model::JobModel& job) {
  return model::facts(job, model::kRollCall);
}

const std::string kFirstWaits =
    "Waiting in store based barrier to initialize process group for rank: 1, key: "
    "store_based_barrier_key:2 (world_size=3, worker_count=2, timeout=0:30:00)\n";

TEST(RollCalls, NameTheRankThatAddedNoKey) {
  model::JobModel job;
  read_roll_calls("Added key: store_based_barrier_key:2 to store for rank: 2\n" + kFirstWaits, job);
  ASSERT_EQ(roll_calls(job).size(), 1U);
  EXPECT_EQ(roll_calls(job)[0]->text("absent"), "0");
  EXPECT_EQ(roll_calls(job)[0]->text("came"), "1-2");
  EXPECT_EQ(roll_calls(job)[0]->flag("first"), false);
}

TEST(RollCalls, NameNoRankIfOneThatCameWroteNothing) {
  model::JobModel job;
  read_roll_calls(kFirstWaits, job);
  EXPECT_TRUE(roll_calls(job).empty());
}

TEST(RollCalls, AreOverWhenTheBarrierIsComplete) {
  model::JobModel job;
  read_roll_calls("Added key: store_based_barrier_key:2 to store for rank: 2\n" + kFirstWaits +
                      "Rank 2: Completed store-based barrier for "
                      "key:store_based_barrier_key:2 with 3 nodes.\n",
                  job);
  EXPECT_TRUE(roll_calls(job).empty());
}

TEST(RollCalls, ReadTheTasksThatTheServiceOfJaxNames) {
  model::JobModel job;
  read_roll_calls(
      "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. "
      "Timed out task names:\n/job:jax_worker/replica:0/task:3\n/job:jax_worker/replica:0/task:1\n"
      "\nnot in the list: /task:7\n",
      job);
  ASSERT_EQ(roll_calls(job).size(), 1U);
  EXPECT_EQ(roll_calls(job)[0]->text("absent"), "1,3");
  EXPECT_EQ(roll_calls(job)[0]->flag("first"), true);
}

}  // namespace
}  // namespace ddpdoctor::imports
