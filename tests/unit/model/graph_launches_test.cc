// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/graph_launches.h"

#include <gtest/gtest.h>

#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

void put_group(JobModel& job, const char* id, std::vector<Rank> ranks) {
  job.groups.push_back({.id = id, .name = id, .backend = "nccl", .ranks = std::move(ranks)});
}

void put_launches(JobModel& job, Rank rank, std::int64_t count) {
  job.facts.push_back({.rank = rank,
                       .pid = 100 + rank,
                       .kind = "graph-launch",
                       .fields = {{"launches", count},
                                  {"calls", std::int64_t{2}},
                                  {"file", std::string("/srv/decode.py")},
                                  {"line", std::int64_t{31}},
                                  {"function", std::string("decode")}}});
}

JobModel told(std::vector<std::int64_t> counts) {
  JobModel job;
  put_group(job, "0", {0, 1, 2});
  for (std::size_t i = 0; i < counts.size(); ++i) {
    put_launches(job, static_cast<Rank>(i), counts[i]);
  }
  add_graph_launches(job);
  return job;
}

TEST(GraphLaunches, AreCallsOfOneGroupWhereARankLaunchedFewer) {
  const JobModel job = told({5, 4, 5});
  ASSERT_EQ(job.collectives.size(), 3U);
  EXPECT_EQ(job.collectives[0].sequence, 5);
  EXPECT_EQ(job.collectives[0].state, CallState::kEnqueued);
  EXPECT_EQ(job.collectives[0].call_site.line, 31);
  EXPECT_EQ(job.collectives[1].sequence, 4);
  EXPECT_EQ(job.collectives[1].state, CallState::kCompleted);
  const ProcessGroup* group = model::group(job, job.collectives[1].group);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->ranks, (std::vector<Rank>{0, 1, 2}));
}

TEST(GraphLaunches, AddNothingWhereTheyAreEqualOrARankIsUnknown) {
  EXPECT_TRUE(told({5, 5, 5}).collectives.empty());
  EXPECT_TRUE(told({5, 4}).collectives.empty());
}

TEST(GraphLaunches, OfTwoReplicasMayDiffer) {
  JobModel job;
  put_group(job, "0", {0, 1, 2, 3});
  put_group(job, "1", {0, 1});
  put_group(job, "2", {2, 3});
  for (const Rank rank : {0, 1, 2, 3}) {
    put_launches(job, rank, rank < 2 ? 9 : 7);
  }
  JobModel equal = job;
  add_graph_launches(equal);
  EXPECT_TRUE(equal.collectives.empty());
  put_launches(job, 3, 1);
  add_graph_launches(job);
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].rank, 2);
}

}  // namespace
}  // namespace ddpdoctor::model
