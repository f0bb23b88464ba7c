// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/ended_ranks.h"

#include <gtest/gtest.h>

#include "collector/model/building/add_recordings.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

constexpr pid_t kLauncher = 10;

/// A process of which only its end is recorded.
sources::Recording ended(pid_t pid, Rank rank, pid_t parent = kLauncher,
                         std::string command = "python train.py") {
  sources::Recording recording;
  recording.pid = pid;
  recording.ppid = parent;
  recording.rank = rank;
  recording.world_size = 4;
  recording.command = std::move(command);
  recording.exit = sources::RecordedExit{.kind = "exit", .value = 0, .time = 1000.0 + pid};
  return recording;
}

Process living(pid_t pid, std::optional<Rank> rank, Role role = Role::kRank,
               std::vector<std::string> command = {"python", "train.py"}) {
  Process process;
  process.pid = pid;
  process.ppid = kLauncher;
  process.rank = rank;
  process.role = role;
  process.command = std::move(command);
  process.state = 'S';
  return process;
}

/// The launcher and ranks 0 to 2, which are running.
std::vector<Process> others() {
  return {living(kLauncher, {}, Role::kOther, {"bash", "cmd.sh"}), living(100, 0), living(101, 1),
          living(102, 2)};
}

TEST(EndedRanks, ARankThatLeftAtOnceIsOne) {
  JobModel job;
  job.observations.push_back({.time = 0, .processes = others()});
  add_recordings(job, {ended(103, 3)});
  const Process* left = rank_process(job, 3);
  ASSERT_NE(left, nullptr);
  EXPECT_EQ(left->exit->status, 0);
}

TEST(EndedRanks, AForkedRankThatNamedItselfIsOne) {
  sources::Recording forked = ended(103, 3);
  forked.forked = true;
  EXPECT_TRUE(was_its_rank(forked, others(), {forked}));
}

TEST(EndedRanks, WhatARankStartedIsNone) {
  const sources::Recording seen = ended(103, 2, 102);
  EXPECT_FALSE(was_its_rank(seen, others(), {seen}));
  const sources::Recording parent = ended(103, 3);
  const sources::Recording child = ended(104, 3, 103);
  EXPECT_FALSE(was_its_rank(child, others(), {parent, child}));
  EXPECT_TRUE(was_its_rank(parent, others(), {parent, child}));
}

TEST(EndedRanks, AShellThatCarriesRankHidesNoRank) {
  const sources::Recording shell = ended(103, 3, kLauncher, "/bin/bash start.sh");
  const sources::Recording rank = ended(104, 3, 103);
  EXPECT_TRUE(was_its_rank(rank, others(), {shell, rank}));
  EXPECT_FALSE(was_its_rank(shell, others(), {shell, rank}));
}

TEST(EndedRanks, AHelperBeforeTheRankIsNone) {
  const sources::Recording before_one_that_lives = ended(90, 2);
  EXPECT_FALSE(was_its_rank(before_one_that_lives, others(), {before_one_that_lives}));
  const sources::Recording helper = ended(90, 3);
  const sources::Recording rank = ended(103, 3);
  EXPECT_FALSE(was_its_rank(helper, others(), {helper, rank}));
  EXPECT_TRUE(was_its_rank(rank, others(), {helper, rank}));
}

TEST(EndedRanks, WhoRanAnotherProgramThanAllRanksIsNone) {
  const sources::Recording helper = ended(90, 3, kLauncher, "python check.py");
  EXPECT_FALSE(was_its_rank(helper, others(), {helper}));
  EXPECT_TRUE(was_its_rank(helper, {}, {helper})) << "no other rank is known";
}

TEST(EndedRanks, AForkedChildThatWasRecordedWithoutCallsIsStillAWorker) {
  sources::Recording worker = ended(110, 2, 102);
  worker.forked = true;
  worker.groups.push_back({.name = "0", .backend = "gloo", .group_rank = 2, .size = 4});
  EXPECT_FALSE(was_its_rank(worker, others(), {worker}));
}

TEST(EndedRanks, TellWhichLineEndedThem) {
  sources::Recording recording = ended(103, 3);
  recording.exit->kind = "_exit";
  recording.exit->stack = {{.file = "/srv/train.py", .line = 18, .function = "main"}};
  JobModel job;
  add_recordings(job, {recording});
  ASSERT_EQ(facts(job, "ended-at").size(), 1U);
  EXPECT_EQ(facts(job, "ended-at")[0]->number("line"), 18);
  recording.exit->stack.insert(recording.exit->stack.begin(),
                               {.file = "/usr/lib/python3.11/multiprocessing/popen_fork.py",
                                .line = 74,
                                .function = "_launch"});
  JobModel by_library;
  add_recordings(by_library, {recording});
  EXPECT_TRUE(facts(by_library, "ended-at").empty());
}

TEST(EndedRanks, TellInWhichCallMpiEndedThem) {
  sources::Recording recording = ended(103, 3);
  recording.events.push_back(
      {.kind = "exit",
       .time = 1103,
       .count = 5,
       .text = "MPI_Abort",
       .stack = {{.file = "/srv/train.py", .line = 18, .function = "main"}}});
  recording.events.push_back({.kind = "exit", .time = 1104, .count = 1});
  JobModel job;
  add_recordings(job, {recording});
  ASSERT_EQ(facts(job, "ended-at").size(), 1U);
  EXPECT_EQ(facts(job, "ended-at")[0]->text("call"), "MPI_Abort");
  EXPECT_EQ(facts(job, "ended-at")[0]->number("status"), 5);
  EXPECT_EQ(facts(job, "ended-at")[0]->number("line"), 18);
}

}  // namespace
}  // namespace ddpdoctor::model
