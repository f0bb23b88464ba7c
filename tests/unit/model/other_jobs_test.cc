// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/other_jobs.h"

#include <gtest/gtest.h>

#include "collector/model/building/add_recordings.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

using Recordings = std::vector<sources::Recording>;

/// `count` ranks of a job with world size `world`, from this pid on, each with one call of
/// `operation`.
void add_job(Recordings& all, pid_t first, int count, int world, const std::string& operation) {
  for (int rank = 0; rank < count; ++rank) {
    sources::Recording one;
    one.pid = first + rank;
    one.ppid = 10;
    one.rank = rank;
    one.world_size = world;
    one.groups.push_back({.name = "0", .backend = "gloo", .group_rank = rank, .size = world});
    one.calls.push_back({.group = 0, .sequence = 1, .operation = operation});
    all.push_back(std::move(one));
  }
}

void end(Recordings& all, pid_t first, int count, int status, double time = 5) {
  for (sources::Recording& one : all) {
    if (one.pid >= first && one.pid < first + count) {
      one.exit = sources::RecordedExit{.kind = "exit", .value = status, .time = time, .stack = {}};
    }
  }
}

JobModel with_alive(std::initializer_list<pid_t> pids) {
  JobModel job;
  job.observations.emplace_back();
  for (const pid_t pid : pids) {
    Process process;
    process.pid = pid;
    process.state = 'S';
    job.observations.back().processes.push_back(process);
  }
  return job;
}

TEST(OtherJobs, AnEndedOneIsNotHeldAgainstTheOneThatGoesOn) {
  Recordings all;
  add_job(all, 100, 2, 2, "broadcast");
  add_job(all, 200, 3, 3, "all_reduce");
  end(all, 100, 2, 0);
  JobModel job = with_alive({200, 201, 202});
  EXPECT_EQ(of_other_jobs(job, all), (std::set<pid_t>{100, 101}));
  add_recordings(job, all);
  ASSERT_EQ(job.collectives.size(), 3U);
  EXPECT_EQ(job.collectives.front().operation, "all_reduce");
  EXPECT_EQ(rank_process(job, 0)->pid, 200);
}

TEST(OtherJobs, OfTheSameSizeAreToldApartByWhoIsAlive) {
  Recordings all;
  add_job(all, 100, 2, 2, "broadcast");
  add_job(all, 200, 2, 2, "all_reduce");
  end(all, 200, 2, 0);
  EXPECT_EQ(of_other_jobs(with_alive({100, 101}), all), (std::set<pid_t>{200, 201}));
}

TEST(OtherJobs, TheOneThatFailedIsToldWhenAllHaveEnded) {
  Recordings all;
  add_job(all, 100, 2, 2, "broadcast");
  add_job(all, 200, 3, 3, "all_reduce");
  end(all, 100, 2, 1, 5);
  end(all, 200, 3, 0, 9);
  EXPECT_EQ(of_other_jobs({}, all), (std::set<pid_t>{200, 201, 202}));
  end(all, 100, 2, 0, 5);
  EXPECT_EQ(of_other_jobs({}, all), (std::set<pid_t>{100, 101}));  // else the last one
}

TEST(OtherJobs, TakeWhatTheirRanksStartedWithThem) {
  Recordings all;
  add_job(all, 100, 2, 2, "broadcast");
  add_job(all, 200, 3, 3, "all_reduce");
  end(all, 100, 2, 0);
  sources::Recording child;
  child.pid = 150;
  child.ppid = 101;
  child.rank = 1;
  child.forked = true;
  all.push_back(child);
  EXPECT_TRUE(of_other_jobs(with_alive({200, 201, 202}), all).contains(150));
}

TEST(OtherJobs, AreNotRanksOfOneJobThatWereToldSomethingWrong) {
  Recordings wrong_size;
  add_job(wrong_size, 100, 1, 2, "broadcast");
  add_job(wrong_size, 200, 3, 3, "all_reduce");
  EXPECT_TRUE(of_other_jobs({}, wrong_size).empty());
  Recordings twice;
  add_job(twice, 100, 1, 2, "broadcast");
  add_job(twice, 200, 2, 2, "broadcast");
  EXPECT_TRUE(of_other_jobs({}, twice).empty());
  Recordings one;
  add_job(one, 100, 3, 3, "broadcast");
  end(one, 100, 1, 0);
  EXPECT_TRUE(of_other_jobs(with_alive({101, 102}), one).empty());
}

TEST(OtherJobs, BothStayWhenBothAreAlive) {
  Recordings all;
  add_job(all, 100, 2, 2, "broadcast");
  add_job(all, 200, 3, 3, "all_reduce");
  EXPECT_TRUE(of_other_jobs(with_alive({100, 101, 200, 201, 202}), all).empty());
}

}  // namespace
}  // namespace ddpdoctor::model
