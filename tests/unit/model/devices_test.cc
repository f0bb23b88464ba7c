// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/devices.h"

#include <gtest/gtest.h>

#include "collector/model/building/add_recordings.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

/// A process with two devices in one communicator, each with a call.
sources::Recording two_devices() {
  sources::Recording recording;
  recording.pid = 100;
  recording.lost = 3;
  for (const int device : {0, 1}) {
    recording.groups.push_back(
        {.name = "nccl:aa", .backend = "nccl", .group_rank = device, .size = 2, .enqueued = 1});
    recording.calls.push_back({.group = static_cast<std::size_t>(device),
                               .sequence = 1,
                               .operation = device == 0 ? "all_reduce" : "all_gather"});
  }
  return recording;
}

TEST(Devices, OfAProcessThatIsTheWholeJobAreItsRanks) {
  JobModel job;
  add_recordings(job, {two_devices()});
  ASSERT_EQ(job.groups.size(), 1U);
  EXPECT_EQ(job.groups[0].ranks, (std::vector<Rank>{0, 1}));
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].group, job.collectives[1].group);
  EXPECT_EQ(job.collectives[1].rank, 1);
  EXPECT_EQ(job.world_size, 2);
  EXPECT_EQ(job.coverage.events_lost, 3U);
  EXPECT_EQ(rank_process(job, 0)->pid, rank_process(job, 1)->pid);
}

TEST(Devices, ShareTheThreadsOfTheirProcessButThoseThatCallForOneOfThem) {
  sources::Recording recording = two_devices();
  recording.calls[0].thread = 101;
  recording.calls[1].thread = 102;
  JobModel job;
  job.observations.emplace_back();
  Process process;
  process.pid = 100;
  process.state = 'S';
  for (const pid_t tid : {100, 101, 102}) {
    process.threads.emplace_back().tid = tid;
  }
  job.observations.back().processes.push_back(process);
  add_recordings(job, {recording});
  ASSERT_EQ(rank_process(job, 1)->threads.size(), 2U);
  EXPECT_EQ(rank_process(job, 1)->threads[1].tid, 102);
  EXPECT_EQ(rank_process(job, 0)->threads[1].tid, 101);
  EXPECT_EQ(rank_process(job, 1)->state, 'S');
}

TEST(Devices, OfOneThreadAllStandWhereItIs) {
  sources::Recording recording = two_devices();
  recording.calls[0].thread = recording.calls[1].thread = 100;
  JobModel job;
  job.observations.emplace_back();
  Process process;
  process.pid = 100;
  process.threads.emplace_back().tid = 100;
  job.observations.back().processes.push_back(process);
  add_recordings(job, {recording});
  EXPECT_EQ(rank_process(job, 0)->threads.size(), 1U);
  EXPECT_EQ(rank_process(job, 1)->threads.size(), 1U);
}

TEST(Devices, BesideOtherRanksAreNone) {
  sources::Recording other = two_devices();
  other.rank = 0;
  sources::Recording plain;
  plain.pid = 101;
  plain.rank = 1;
  plain.groups.push_back({.name = "0", .backend = "gloo", .group_rank = 1, .size = 2});
  const auto recordings = by_device({other, plain});
  ASSERT_EQ(recordings.size(), 2U);
  EXPECT_EQ(recordings[0].groups[0].name, "nccl:aa device 0");
  EXPECT_EQ(recordings[0].groups[1].name, "nccl:aa device 1");
  EXPECT_EQ(recordings[0].rank, 0);
}

TEST(Devices, AreNotMadeOfAProcessThatLeftAndCameBack) {
  sources::Recording again = two_devices();
  again.groups[1].group_rank = 0;
  EXPECT_FALSE(drives_devices(again));
}

}  // namespace
}  // namespace ddpdoctor::model
