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
  whole.coverage.unobserved = {"ranks 1 and 2: runs on another machine",
                               "rank 0: permission denied"};
  whole.coverage.warnings = {
      "1 of 3 ranks run on this machine (0); the others are on other machines and were not "
      "observed"};
  merge(whole, with_ranks({1}, 1));
  EXPECT_EQ(whole.coverage.unobserved, (std::vector<std::string>{"rank 2: runs on another machine",
                                                                 "rank 0: permission denied"}));
  EXPECT_TRUE(whole.coverage.warnings.empty());  // it reports rank 1 as unobserved
  merge(whole, with_ranks({2}, 1));
  EXPECT_EQ(whole.coverage.unobserved, std::vector<std::string>{"rank 0: permission denied"});
  EXPECT_TRUE(whole.coverage.warnings.empty());
}

/// One recording of the job: ranks 0 and 1 of a machine are at this line.
model::JobModel recorded_at(double time, int line, const std::string& host = "a") {
  model::JobModel job = with_ranks({0, 1}, 1);
  job.hosts = {host};
  model::Observation& look = job.observations.back();
  look.time = time;
  for (model::Process& process : look.processes) {
    process.host = host;
    process.pid = 100 + *process.rank;
    process.start_time = 1000.0 + 1e-6 * time;  // the clock's jitter
    model::Frame frame;
    frame.language = model::Language::kPython;
    frame.file = "/t.py";
    frame.line = line;
    process.threads[0].frames = {frame};
  }
  return job;
}

TEST(Merge, ACopyAddsNothing) {
  model::JobModel whole = recorded_at(50, 3);
  whole.logs = {{.rank = 0, .text = "x"}};
  merge(whole, whole);
  ASSERT_EQ(whole.observations.size(), 1U);
  EXPECT_EQ(whole.observations[0].processes.size(), 2U);
  EXPECT_EQ(whole.logs.size(), 1U);
}

TEST(Merge, TheSameProcessesLaterAreASecondLook) {
  for (const bool newer_first : {false, true}) {
    model::JobModel whole = recorded_at(newer_first ? 55 : 50, 3);
    merge(whole, recorded_at(newer_first ? 50 : 55, 3));
    ASSERT_EQ(whole.observations.size(), 2U);
    EXPECT_EQ(whole.observations[1].time, 55);
    EXPECT_EQ(whole.observations[1].processes.size(), 2U);
    EXPECT_EQ(whole.progress, model::Progress::kStill);
  }
}

TEST(Merge, WhoMovedBeforeTheNewerRecordingMayHangInIt) {
  model::JobModel whole = recorded_at(50, 1);
  whole.progress = model::Progress::kMoving;
  model::JobModel hung = recorded_at(55, 3);
  hung.progress = model::Progress::kStill;
  hung.seconds_without_progress = 9;
  merge(whole, hung);
  EXPECT_EQ(whole.progress, model::Progress::kStill);
  EXPECT_EQ(whole.seconds_without_progress, 9);
  ASSERT_EQ(whole.observations.size(), 1U);
  EXPECT_EQ(whole.observations[0].time, 55);
}

TEST(Merge, ASecondLookKeepsTheCallsAndTheOtherMachines) {
  const auto call = [](model::Rank rank, std::int64_t number, model::CallState state) {
    model::CollectiveCall out;
    out.rank = rank;
    out.group = "0";
    out.sequence = number;
    out.operation = "barrier";
    out.state = state;
    return out;
  };
  model::JobModel whole = recorded_at(50, 3);
  whole.collectives = {call(0, 1, model::CallState::kCompleted),
                       call(0, 2, model::CallState::kStarted)};
  model::JobModel node = recorded_at(40, 3, "b");
  for (model::Process& process : node.observations[0].processes) {
    *process.rank += 2;
  }
  merge(whole, node);
  model::JobModel later = recorded_at(55, 3);
  later.collectives = {call(0, 2, model::CallState::kCompleted)};
  merge(whole, later);
  ASSERT_EQ(whole.collectives.size(), 2U);
  EXPECT_EQ(whole.collectives[0].state, model::CallState::kCompleted);
  EXPECT_EQ(whole.observations.back().processes.size(), 4U);
}

TEST(Merge, OtherProcessesOfOneRankAreASign) {
  model::JobModel whole = recorded_at(50, 3);
  model::JobModel other = recorded_at(50, 3);
  for (model::Process& process : other.observations[0].processes) {
    process.pid += 500;
  }
  merge(whole, other);
  EXPECT_EQ(whole.coverage.warnings,
            std::vector<std::string>{
                "ranks 0 and 1 are another process in each of the files: are they of one job?"});
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
