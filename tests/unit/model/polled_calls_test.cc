// SPDX-License-Identifier: Apache-2.0
// A rank that polls the state of an NCCL call in a loop is not moving, whatever line of the loop it
// is at; one that has not polled for some time is working.
#include "collector/model/building/polled_calls.h"

#include <gtest/gtest.h>

#include "collector/model/building/add_recordings.h"

namespace ddpdoctor::model {
namespace {

constexpr double kCalled = 100;
constexpr pid_t kPid = 4710;
constexpr int kAsks = 14;
constexpr int kSleeps = 15;

sources::Recording asking(double asked) {
  sources::Recording recording;
  recording.pid = kPid;
  recording.rank = 0;
  recording.world_size = 2;
  recording.groups.push_back({.name = "nccl:1",
                              .backend = "nccl",
                              .group_rank = 0,
                              .size = 2,
                              .enqueued = 1,
                              .asked_by = kPid,
                              .asked = asked});
  recording.calls.push_back({.group = 0,
                             .sequence = 1,
                             .operation = "comm_init",
                             .in_progress = true,
                             .thread = kPid,
                             .time = kCalled,
                             .stack = {{"/srv/train.py", 21, "init"}}});
  return recording;
}

Observation look(double time, int line) {
  Thread thread;
  thread.tid = kPid;
  thread.state = line == kAsks ? 'R' : 'S';
  thread.run_count = static_cast<std::uint64_t>(line);
  Frame frame;
  frame.language = Language::kPython;
  frame.function = "ready";
  frame.file = "/srv/train.py";
  frame.line = line;
  thread.frames.push_back(frame);
  Process process;
  process.pid = kPid;
  process.rank = 0;
  process.role = Role::kRank;
  process.threads.push_back(thread);
  return {.time = time, .processes = {process}};
}

JobModel seen(const sources::Recording& recording) {
  JobModel job;
  job.observations = {look(kCalled + 9, kAsks), look(kCalled + 10, kSleeps)};
  job.progress = Progress::kMoving;
  add_recordings(job, {recording});
  mark_polled_calls(job, {recording});
  return job;
}

TEST(PolledCalls, AreWaitedForByTheThreadThatAsks) {
  const JobModel job = seen(asking(kCalled + 10.1));
  EXPECT_EQ(job.progress, Progress::kStill);
  EXPECT_DOUBLE_EQ(job.seconds_without_progress.value_or(0), 10);
  const auto& waits = job.observations.back().processes.front().threads.front().waits_on;
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->kind, kPolledCall);
  EXPECT_EQ(waits->target, "nccl:1");
  EXPECT_EQ(waits->detail, "comm_init #1");
}

TEST(PolledCalls, ThatTheThreadHasNotAskedForLatelyAreNot) {
  EXPECT_EQ(seen(asking(kCalled + 8)).progress, Progress::kMoving);
  EXPECT_EQ(seen(asking(0)).progress, Progress::kMoving);
  EXPECT_FALSE(some_call_is_polled({asking(0)}));
}

TEST(PolledCalls, ThatHaveEndedOrOfAnotherThreadAreNot) {
  sources::Recording ended = asking(kCalled + 10.1);
  ended.calls.front().state = sources::RecordedState::kCompleted;
  EXPECT_EQ(seen(ended).progress, Progress::kMoving);
  sources::Recording of_a_helper = asking(kCalled + 10.1);
  of_a_helper.groups.front().asked_by = kPid + 5;
  EXPECT_EQ(seen(of_a_helper).progress, Progress::kMoving);
}

}  // namespace
}  // namespace ddpdoctor::model
