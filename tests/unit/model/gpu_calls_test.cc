// SPDX-License-Identifier: Apache-2.0
#include "collector/model/gpu_calls.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "collector/model/building/add_recordings.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

using sources::RecordedState;

sources::RecordedCall on_stream(std::size_t group, std::int64_t sequence, RecordedState state) {
  sources::RecordedCall call{.group = group, .sequence = sequence, .operation = "all_reduce"};
  call.on_stream = true;
  call.stream = 7;
  call.state = state;
  return call;
}

sources::Recording recording_of(Rank rank, std::vector<sources::RecordedCall> calls) {
  sources::Recording recording;
  recording.pid = 100 + rank;
  recording.rank = rank;
  recording.world_size = 3;
  for (const char* name : {"nccl:000000000000000a", "nccl:000000000000000b"}) {
    recording.groups.push_back(
        {.name = name, .backend = "nccl", .group_rank = rank, .size = 3, .enqueued = 1});
  }
  recording.calls = std::move(calls);
  return recording;
}

TEST(GpuCalls, AreNotThereWhileAnotherCommunicatorHoldsTheStream) {
  const auto recording = recording_of(
      0, {on_stream(0, 1, RecordedState::kCompleted), on_stream(0, 2, RecordedState::kStarted),
          on_stream(1, 1, RecordedState::kEnqueued)});
  EXPECT_EQ(queued_behind_others(recording), (std::vector<bool>{false, false, true}));
}

TEST(GpuCalls, AreThereBehindCallsOfTheirOwnCommunicator) {
  const auto recording = recording_of(
      0, {on_stream(0, 1, RecordedState::kStarted), on_stream(0, 2, RecordedState::kEnqueued)});
  EXPECT_EQ(queued_behind_others(recording), (std::vector<bool>{false, false}));
}

TEST(GpuCalls, AreThereWhenLaunchedTogetherOrOnAnotherStream) {
  auto grouped = on_stream(1, 1, RecordedState::kEnqueued);
  grouped.grouped = true;
  auto elsewhere = on_stream(1, 2, RecordedState::kEnqueued);
  elsewhere.stream = 8;
  const auto recording = recording_of(0, {on_stream(0, 1, RecordedState::kStarted), grouped,
                                          elsewhere, on_stream(1, 3, RecordedState::kUnknown)});
  EXPECT_EQ(queued_behind_others(recording), (std::vector<bool>{false, false, false, false}));
}

TEST(GpuCalls, AreThereWhenTheProcessLeftWithoutALastLook) {
  auto recording = recording_of(
      0, {on_stream(0, 1, RecordedState::kEnqueued), on_stream(1, 1, RecordedState::kEnqueued)});
  recording.exit = sources::RecordedExit{.kind = "_exit"};
  EXPECT_EQ(queued_behind_others(recording), (std::vector<bool>{false, false}));
}

TEST(GpuCalls, GiveWayToWhatTorchToldOfTheSameCalls) {
  JobModel job;
  job.groups.push_back({.id = "0", .name = "default_pg", .backend = "nccl", .ranks = {0, 1}});
  for (const Rank rank : {0, 1}) {
    CollectiveCall call;
    call.rank = rank;
    call.group = "0";
    call.sequence = 1;
    call.operation = "all_reduce";
    job.collectives.push_back(call);
  }
  const std::vector<sources::Recording> recordings{
      recording_of(0, {on_stream(0, 1, RecordedState::kStarted)}),
      recording_of(1, {on_stream(0, 1, RecordedState::kStarted)})};
  add_recordings(job, recordings);
  EXPECT_EQ(job.collectives.size(), 2U);
  EXPECT_TRUE(std::all_of(job.collectives.begin(), job.collectives.end(),
                          [](const CollectiveCall& call) { return call.group == "0"; }));
}

TEST(GpuCalls, StandWhenTorchToldOfOneRankOnly) {
  JobModel job;
  job.groups.push_back({.id = "0", .name = "default_pg", .backend = "nccl", .ranks = {0, 1}});
  CollectiveCall call;
  call.group = "0";
  call.sequence = 1;
  job.collectives.push_back(call);
  add_recordings(job, {recording_of(0, {on_stream(0, 1, RecordedState::kStarted)}),
                       recording_of(1, {on_stream(0, 1, RecordedState::kStarted)})});
  EXPECT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].group, "nccl:000000000000000a");
}

TEST(GpuCalls, AreMissedWhereNcclRunsAndNothingWasRecorded) {
  JobModel job;
  job.observations.emplace_back();
  for (const Rank rank : {0, 1}) {
    Process process;
    process.pid = 100 + rank;
    process.rank = rank;
    process.threads.resize(2);
    process.threads.back().name = "NCCL Service 0";
    job.observations.back().processes.push_back(std::move(process));
  }
  sources::Recording blind = recording_of(1, {});
  blind.groups.clear();
  EXPECT_EQ(with_unseen_nccl(job, {recording_of(0, {}), blind}), RankSet({1}));
}

TEST(GpuCalls, AreOfUnknownProgressWhereTheDriverIsSilent) {
  constexpr double kNow = 1'700'000'060;
  JobModel job;
  job.observations.push_back({.time = kNow, .processes = {}});
  std::vector<sources::Recording> recordings;
  for (const Rank rank : {0, 1, 2, 3, 4}) {
    recordings.push_back(recording_of(rank, {}));
    recordings.back().driver_answered = kNow - 20;
    Process process;
    process.pid = 100 + rank;
    process.rank = rank;
    process.state = 'S';
    job.observations.back().processes.push_back(std::move(process));
  }
  recordings[0].driver_answered = kNow - 0.02;
  recordings[1].driver_answered.reset();
  job.observations.back().processes[2].state = 'T';
  job.observations.back().processes[3].exit = Exit{.status = 0, .signal = {}};
  EXPECT_EQ(with_silent_driver(job, recordings), RankSet({4}));
  ASSERT_EQ(warnings_of_gpus(job, recordings).size(), 1U);
  EXPECT_NE(warnings_of_gpus(job, recordings)[0].find("driver does not answer"), std::string::npos);
  job.ended = true;
  EXPECT_TRUE(with_silent_driver(job, recordings).empty());
}

TEST(GpuCalls, KnowWhoIsMissingInACommunicatorOfEverybody) {
  JobModel job;
  add_recordings(job, {recording_of(0, {}), recording_of(2, {})});
  const ProcessGroup* const found = group(job, "nccl:000000000000000a");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->ranks, (std::vector<Rank>{0, 1, 2}));
  EXPECT_EQ(found->name, "communicator 0x000000000000000a");
}

}  // namespace
}  // namespace ddpdoctor::model
