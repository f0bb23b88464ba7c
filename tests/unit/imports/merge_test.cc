// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/merge.h"

#include <gtest/gtest.h>

#include "tests/support/job_builder.h"

namespace ddpdoctor::imports {
namespace {

model::JobModel with_ranks(std::initializer_list<model::Rank> ranks, std::size_t looks) {
  model::JobModel job;
  job.observations.resize(looks);
  for (model::Observation& observation : job.observations) {
    for (const model::Rank rank : ranks) {
      model::Process process;
      process.rank = rank;
      process.role = model::Role::kRank;
      process.threads.resize(1);
      observation.processes.push_back(process);
    }
  }
  return job;
}

TEST(Merge, JoinsTheNewestLooks) {
  model::JobModel whole = with_ranks({0, 1}, 2);
  merge(whole, with_ranks({2, 3}, 1));
  ASSERT_EQ(whole.observations.size(), 2U);
  EXPECT_EQ(whole.observations.front().processes.size(), 2U);
  EXPECT_EQ(whole.observations.back().processes.size(), 4U);
  merge(whole, with_ranks({4}, 3));
  EXPECT_EQ(whole.observations.size(), 3U);
  EXPECT_EQ(whole.observations.back().processes.size(), 5U);
}

TEST(Merge, AddsCallsFactsGroupsAndSources) {
  model::JobModel whole = tests::job().ranks(2).all_reduce({0}, 1).build();
  model::JobModel part = tests::job().ranks(2).group("7", {0, 1}).all_reduce({1}, 1).build();
  part.sources["/srv/t.py"][3] = "x";
  part.coverage.warnings = {"w"};
  const std::size_t groups = whole.groups.size();
  merge(whole, part);
  EXPECT_EQ(whole.collectives.size(), 2U);
  EXPECT_EQ(whole.groups.size(), groups + 1);
  EXPECT_EQ(whole.sources["/srv/t.py"][3], "x");
  EXPECT_EQ(whole.coverage.warnings, std::vector<std::string>{"w"});
}

TEST(Merge, WhatOneCouldNotSeeTheOtherMayHave) {
  model::JobModel whole = with_ranks({0}, 1);
  whole.coverage.unobserved_ranks = {1, 2};
  merge(whole, with_ranks({1}, 1));
  EXPECT_EQ(whole.coverage.unobserved_ranks, model::RankSet{2});
}

TEST(Merge, WhoRanOnAnotherMachineWasSeenThere) {
  model::JobModel whole = with_ranks({0}, 1);
  whole.world_size = 3;
  whole.coverage.unobserved = {"ranks 1-2: runs on another machine", "rank 0: permission denied"};
  whole.coverage.warnings = {
      "1 of 3 ranks run on this machine (0); the others are on other machines and were not "
      "observed"};
  merge(whole, with_ranks({1}, 1));
  EXPECT_EQ(whole.coverage.unobserved.size(), 2U);
  EXPECT_EQ(whole.coverage.warnings.size(), 1U);
  merge(whole, with_ranks({2}, 1));
  EXPECT_EQ(whole.coverage.unobserved, std::vector<std::string>{"rank 0: permission denied"});
  EXPECT_TRUE(whole.coverage.warnings.empty());
}

TEST(Merge, TheSameProcessesAreKnownByPidAndStart) {
  model::JobModel first = with_ranks({0, 1}, 1);
  first.observations[0].processes[0].pid = 42;
  EXPECT_FALSE(saw_the_same(first, first)) << "no start is known";
  first.observations[0].processes[0].start_time = 1000;
  EXPECT_TRUE(saw_the_same(first, first));
  model::JobModel again = first;
  again.observations[0].processes[0].start_time = 1100;
  EXPECT_FALSE(saw_the_same(first, again));
  again = first;
  again.observations[0].processes[0].host = "node1";
  EXPECT_FALSE(saw_the_same(first, again));
  again = first;
  again.hosts = {"node1"};
  EXPECT_FALSE(saw_the_same(first, again));
}

TEST(Merge, AnybodyMovingIsAJobInMotion) {
  model::JobModel whole;
  whole.progress = model::Progress::kStill;
  model::JobModel part;
  part.progress = model::Progress::kMoving;
  merge(whole, part);
  EXPECT_EQ(whole.progress, model::Progress::kMoving);
  whole.progress = model::Progress::kStill;
  part.progress = model::Progress::kUnknown;
  merge(whole, part);
  EXPECT_EQ(whole.progress, model::Progress::kUnknown);
}

}  // namespace
}  // namespace ddpdoctor::imports
