// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/look.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace ddpdoctor::monitor {
namespace {

constexpr double kNow = 1000;
constexpr double kQuiet = 2;

stacks::ThreadStack sleeping(pid_t tid) {
  stacks::ThreadStack thread;
  thread.tid = tid;
  thread.state = 'S';
  thread.method = stacks::CaptureMethod::kNoStop;
  thread.run_count = 7;
  thread.frames.resize(1);
  thread.frames.front().language = stacks::Language::kPython;
  thread.frames.front().file = "/v/site-packages/torch/distributed/distributed_c10d.py";
  return thread;
}

/// A rank whose newest record is `age` seconds old.
void add_rank(model::Look& look, int rank, double age) {
  sources::JobProcess process;
  process.row.pid = 100 + rank;
  process.role = sources::JobRole::kRank;
  process.rank = rank;
  look.tree.processes.push_back(process);
  stacks::ProcessStacks stacks;
  stacks.pid = process.row.pid;
  stacks.threads = {sleeping(process.row.pid)};
  stacks.torch.emplace();
  stacks.torch->recorder_read = true;
  stacks.torch->records.resize(1);
  stacks.torch->records.front().created_ns = static_cast<std::int64_t>((kNow - age) * 1e9);
  look.stacks.push_back(stacks);
}

model::Look hung_pair() {
  model::Look look;
  look.time = kNow;
  look.tree.world_size = 2;
  add_rank(look, 0, 94);
  add_rank(look, 1, 95);
  return look;
}

TEST(StillByRecorders, TellsTheAgeOfTheNewestRecord) {
  const auto age = still_by_recorders(hung_pair(), kQuiet);
  ASSERT_TRUE(age);
  EXPECT_NEAR(*age, 94, 0.001);
}

TEST(OutsideTorch, ARankMayBeAtWorkThereWithWhatItStarted) {
  model::Look look = hung_pair();
  EXPECT_TRUE(outside_torch(look).empty());
  look.stacks[0].threads.front().frames.front().file = "/srv/train.py";
  stacks::ThreadStack of_backend = sleeping(500);  // such threads always wait in torch
  of_backend.frames.front().language = stacks::Language::kNative;
  of_backend.frames.front().function = "c10d::ProcessGroupGloo::runLoop";
  look.stacks[0].threads.push_back(of_backend);
  sources::JobProcess compiler;
  compiler.row.pid = 300;
  compiler.row.ppid = look.stacks[0].pid;
  look.tree.processes.push_back(compiler);
  EXPECT_EQ(outside_torch(look), (std::vector<pid_t>{look.stacks[0].pid, 300}));
}

TEST(WaitsForOutsider, ARankInAFileOperationDoesOrItsDiskIsBusy) {
  model::Look look = hung_pair();
  const pid_t pid = look.stacks[0].pid;
  EXPECT_FALSE(waits_for_outsider(look));
  look.waits[{pid, pid}] = {.kind = "mutex", .target = {}, .detail = {}};
  EXPECT_FALSE(waits_for_outsider(look));
  look.waits[{pid, pid}] = {.kind = "file", .target = "file:/srv/model.so", .detail = {}};
  EXPECT_TRUE(waits_for_outsider(look));
}

TEST(HasStirred, SeesBytesThatMovedSinceTheLook) {
  model::Look look;
  sources::JobProcess self;
  const auto row = sources::read_process(::getpid());
  ASSERT_TRUE(row);
  self.row = *row;
  sources::complete(self.row);
  self.row.cpu_seconds += 100;  // only the bytes differ
  self.role = sources::JobRole::kRank;
  look.tree.processes.push_back(self);
  if (!self.row.io_bytes) {
    GTEST_SKIP() << "no /proc/self/io";
  }
  look.tree.processes.front().row.io_bytes = *self.row.io_bytes - (1 << 20);
  EXPECT_TRUE(has_stirred(look, {::getpid()}));
}

TEST(StillByRecorders, AFreshRecordProvesNothing) {
  model::Look look = hung_pair();
  look.stacks[1].torch->records.front().created_ns = static_cast<std::int64_t>((kNow - 1) * 1e9);
  EXPECT_FALSE(still_by_recorders(look, kQuiet));
}

TEST(StillByRecorders, AMissingRankProvesNothing) {
  model::Look look = hung_pair();
  look.tree.world_size = 3;
  EXPECT_FALSE(still_by_recorders(look, kQuiet));
  look.tree.world_size.reset();
  EXPECT_FALSE(still_by_recorders(look, kQuiet));
}

TEST(StillByRecorders, AnUnreadOrEmptyRecorderProvesNothing) {
  model::Look look = hung_pair();
  look.stacks[1].torch->recorder_read = false;
  EXPECT_FALSE(still_by_recorders(look, kQuiet));
  look = hung_pair();
  look.stacks[1].torch->records.clear();
  EXPECT_FALSE(still_by_recorders(look, kQuiet));
}

TEST(StillByRecorders, AnybodyOnACpuMayStillMove) {
  for (const char state : {'R', 'D'}) {
    model::Look look = hung_pair();
    look.stacks[0].threads.push_back(sleeping(200));
    look.stacks[0].threads.back().state = state;
    EXPECT_FALSE(still_by_recorders(look, kQuiet)) << state;
  }
  model::Look look = hung_pair();
  look.stacks[0].threads.front().method = stacks::CaptureMethod::kStopped;
  EXPECT_FALSE(still_by_recorders(look, kQuiet));
}

TEST(StillByRecorders, ABusyWorkerCountsALauncherDoesNot) {
  model::Look look = hung_pair();
  sources::JobProcess other;
  other.row.pid = 50;
  other.role = sources::JobRole::kLauncher;
  look.tree.processes.push_back(other);
  stacks::ProcessStacks stacks;
  stacks.pid = 50;
  stacks.threads = {sleeping(50)};
  stacks.threads.front().state = 'R';
  look.stacks.push_back(stacks);
  EXPECT_TRUE(still_by_recorders(look, kQuiet));
  look.tree.processes.back().role = sources::JobRole::kDataLoaderWorker;
  EXPECT_FALSE(still_by_recorders(look, kQuiet));
}

TEST(HasNotRun, ComparesEveryThread) {
  stacks::ProcessStacks before;
  before.threads = {sleeping(1), sleeping(2)};
  EXPECT_TRUE(has_not_run(before, {{2, 7}, {1, 7}}));
  EXPECT_FALSE(has_not_run(before, {{1, 7}, {2, 8}}));
  EXPECT_FALSE(has_not_run(before, {{1, 7}}));
  EXPECT_FALSE(has_not_run(before, {{1, 7}, {3, 7}}));
  EXPECT_FALSE(has_not_run(before, {}));
}

}  // namespace
}  // namespace ddpdoctor::monitor
