// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/worker_groups.h"

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::model {
namespace {

/// Four workers: two of each class, or all of one, with ranks 0, 1, 0, 1.
JobModel workers(const std::string& first, const std::string& second) {
  JobModel job = tests::job().ranks(4).build();
  for (Observation& look : job.observations) {
    for (Process& process : look.processes) {
      const bool of_second = process.rank && *process.rank > 1;
      process.command = {of_second ? second : first};
      process.rank = of_second ? *process.rank - 2 : process.rank;
    }
  }
  return job;
}

TEST(WorkerGroups, OneOfThemKeepsItsRanks) {
  JobModel job = workers("ray::Actor.update", "ray::Rollout.load_weights");
  const auto said = keep_one_worker_group(job, 0);
  ASSERT_TRUE(said);
  EXPECT_NE(said->find("reports Rollout"), said->npos) << *said;
  EXPECT_EQ(ranks_seen(job).size(), 2U);
  for (const Rank rank : {0, 1}) {
    ASSERT_NE(rank_process(job, rank), nullptr);
    EXPECT_EQ(rank_process(job, rank)->command.front(), "ray::Actor.update");
  }
}

TEST(WorkerGroups, TheProcessThatWasAskedForNamesTheGroup) {
  JobModel job = workers("ray::Actor", "ray::Rollout");
  const pid_t last = latest(job)->processes.back().pid;
  const auto said = keep_one_worker_group(job, last);
  ASSERT_TRUE(said);
  EXPECT_NE(said->find("reports Actor"), said->npos) << *said;
  EXPECT_EQ(latest(job)->processes.back().role, Role::kRank);
}

TEST(WorkerGroups, OneClassWithARankTwiceIsLeftAsItIs) {
  JobModel job = workers("ray::Actor.update", "ray::Actor");
  EXPECT_FALSE(keep_one_worker_group(job, 0));
  JobModel plain = workers("python", "python");
  EXPECT_FALSE(keep_one_worker_group(plain, 0));
  EXPECT_EQ(latest(plain)->processes.back().role, Role::kRank);
}

TEST(WorkerGroups, ClassesThatShareNoRankAreOneGroup) {
  JobModel job = workers("ray::Leader", "ray::Leader");
  for (Observation& look : job.observations) {
    for (std::size_t i = 0; i < look.processes.size(); ++i) {
      look.processes[i].rank = static_cast<Rank>(i);
      look.processes[i].command = {i == 0 ? "ray::Leader" : "ray::Follower"};
    }
  }
  EXPECT_FALSE(keep_one_worker_group(job, 0));
}

}  // namespace
}  // namespace ddpdoctor::model
