// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/add_recordings.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

sources::Recording recording_of(pid_t pid, Rank rank) {
  sources::Recording recording;
  recording.pid = pid;
  recording.ppid = 10;
  recording.rank = rank;
  recording.world_size = 4;
  recording.groups.push_back({.name = "0", .backend = "gloo", .group_rank = rank, .size = 4});
  return recording;
}

sources::RecordedCall call_in(std::size_t group, std::int64_t sequence,
                              std::string operation = "all_reduce") {
  return {.group = group, .sequence = sequence, .operation = std::move(operation)};
}

TEST(AddRecordings, TurnsGroupRanksIntoRanks) {
  std::vector<sources::Recording> recordings;
  for (const Rank rank : {1, 3}) {
    sources::Recording recording = recording_of(100 + rank, rank);
    recording.groups[0].enqueued = 1;
    recording.groups.push_back(
        {.name = "1", .backend = "gloo", .group_rank = rank / 2, .size = 2, .enqueued = 1});
    sources::RecordedCall call = call_in(1, 1, "broadcast");
    call.peer = 1;
    recording.calls.push_back(call);
    recordings.push_back(std::move(recording));
  }
  JobModel job;
  add_recordings(job, recordings);
  const auto group = std::find_if(job.groups.begin(), job.groups.end(),
                                  [](const ProcessGroup& one) { return one.id == "1"; });
  ASSERT_NE(group, job.groups.end());
  EXPECT_EQ(group->ranks, (std::vector<Rank>{1, 3}));
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].root, 3);
}

TEST(AddRecordings, LeavesOutWhatAFormerLifeOfTheJobCalled) {
  std::vector<sources::Recording> recordings = {recording_of(100, 0), recording_of(200, 0)};
  recordings[0].calls = {call_in(0, 1, "broadcast")};
  recordings[0].superseded = true;
  recordings[0].standard_error = "RuntimeError: the node was taken away";
  recordings[1].calls = {call_in(0, 1)};
  JobModel job;
  add_recordings(job, recordings);
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.collectives[0].operation, "all_reduce");
  EXPECT_TRUE(job.logs.empty());
  ASSERT_EQ(facts(job, "former-output").size(), 1U);
  EXPECT_EQ(facts(job, "former-output")[0]->text("text"), recordings[0].standard_error);
  EXPECT_EQ(rank_process(job, 0)->pid, 200);
}

TEST(AddRecordings, DoesNotTakeANamelessGroupForANamedOne) {
  sources::Recording recording = recording_of(100, 0);
  recording.groups.push_back({.name = {}, .backend = "gloo", .enqueued = 1});
  recording.groups.push_back({.name = "1", .backend = "gloo", .enqueued = 1});
  recording.calls = {call_in(1, 1), call_in(2, 1)};
  JobModel job;
  add_recordings(job, {recording});
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_NE(job.collectives[0].group, job.collectives[1].group);
}

TEST(AddRecordings, TellsWhichCallFoundNoDescriptorAndWhere) {
  sources::Recording recording = recording_of(100, 0);
  recording.events.push_back({.kind = "descriptors-full",
                              .time = 5,
                              .peer = 24,
                              .text = "socket",
                              .stack = {{"/srv/train.py", 9, "connect"}}});
  recording.events.push_back({.kind = "shm-open", .count = -24, .text = "/torch_1"});
  JobModel job;
  add_recordings(job, {recording});
  ASSERT_EQ(job.facts.size(), 2U);
  EXPECT_EQ(job.facts[0].kind, "fd-failure");
  EXPECT_EQ(job.facts[0].text("call"), "socket");
  EXPECT_EQ(job.facts[0].number("line"), 9);
  EXPECT_EQ(job.facts[1].kind, "fd-failure");
}

TEST(AddRecordings, TellsFullSharedMemoryFromAFullDisk) {
  sources::Recording recording = recording_of(100, 0);
  recording.events.push_back({.kind = "no-space", .peer = 28, .text = "/data/model.pt"});
  recording.events.push_back({.kind = "no-space", .peer = 28, .text = "/dev/shm/torch_1"});
  recording.events.push_back({.kind = "shm-size", .count = 4096, .peer = 28, .text = "/psm_1"});
  JobModel job;
  add_recordings(job, {recording});
  ASSERT_EQ(job.facts.size(), 3U);
  EXPECT_EQ(job.facts[0].kind, "disk-failure");
  EXPECT_EQ(job.facts[1].kind, "shm-failure");
  EXPECT_EQ(job.facts[2].text("path"), "/dev/shm/psm_1");
}

TEST(AddRecordings, SaysThatAChildUsedCudaAfterTheFork) {
  sources::Recording parent = recording_of(100, 0);
  parent.events.push_back({.kind = "fork", .count = 101, .peer = 1});
  parent.events.push_back({.kind = "fork", .count = 102, .peer = -1});
  sources::Recording child = recording_of(101, 0);
  child.forked = true;
  child.events.push_back(
      {.kind = "cuda-after-fork", .count = 0, .peer = 100, .text = "cudaMalloc"});
  JobModel job;
  add_recordings(job, {parent, child});
  const auto forks = facts(job, "cuda-fork");
  ASSERT_EQ(forks.size(), 2U);
  EXPECT_EQ(forks[0]->flag("used"), false);
  EXPECT_EQ(forks[0]->pid, 101);
  EXPECT_EQ(forks[1]->flag("used"), true);
  EXPECT_EQ(forks[1]->number("parent_pid"), 100);
}

TEST(AddRecordings, TellsTheGpuOfARankThatUsesOneOnly) {
  sources::Recording one = recording_of(100, 0);
  one.cuda_devices = 1U << 3U;
  one.events.push_back({.kind = "cuda-context",
                        .count = 3,
                        .text = "cudaSetDevice",
                        .stack = {{"/srv/train.py", 9, "setup"}}});
  sources::Recording many = recording_of(200, 1);
  many.cuda_devices = 0b11;
  sources::Recording none = recording_of(300, 2);
  sources::Recording worker = recording_of(101, 0);
  worker.ppid = 100;
  worker.forked = true;
  worker.cuda_devices = 1;
  JobModel job;
  add_recordings(job, {one, many, none, worker});
  const auto contexts = facts(job, "cuda-context");
  ASSERT_EQ(contexts.size(), 1U);
  EXPECT_EQ(contexts[0]->rank, 0);
  EXPECT_EQ(contexts[0]->number("device"), 3);
  EXPECT_EQ(contexts[0]->number("line"), 9);
}

TEST(AddRecordings, TellsWhichChildrenARankDidNotWaitFor) {
  sources::Recording parent = recording_of(100, 0);
  parent.events.push_back({.kind = "fork", .count = 101});
  parent.events.push_back({.kind = "fork", .count = 102});
  parent.events.push_back({.kind = "fork", .time = 7, .count = -1, .text = "vfork"});
  parent.events.push_back({.kind = "child-exit", .count = 101});
  JobModel job;
  add_recordings(job, {parent});
  const auto children = facts(job, "child-started");
  ASSERT_EQ(children.size(), 2U);
  EXPECT_EQ(children[0]->pid, std::nullopt);
  EXPECT_EQ(children[0]->number("time"), 7);
  EXPECT_EQ(children[1]->pid, 102);
}

TEST(AddRecordings, CallsMpisNonblockingTwinsByAnotherName) {
  sources::Recording recording = recording_of(100, 0);
  recording.groups.push_back(
      {.name = "MPI_COMM_WORLD", .backend = "mpi", .group_rank = 0, .size = 4, .enqueued = 2});
  recording.calls = {call_in(1, 1), call_in(1, 2)};
  recording.calls[1].asynchronous = true;
  JobModel job;
  add_recordings(job, {recording});
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].operation, "all_reduce");
  EXPECT_EQ(job.collectives[1].operation, "iall_reduce");
  const ProcessGroup* world = group(job, "MPI_COMM_WORLD");
  ASSERT_NE(world, nullptr);
  EXPECT_EQ(world->ranks.size(), 4U);
}

TEST(AddRecordings, KeepsTheFileOfCompiledCodeThatIsGone) {
  sources::Recording recording = recording_of(100, 0);
  recording.calls = {call_in(0, 1)};
  recording.calls[0].stack = {{.file = "/gone/a.out", .line = 0, .function = "+0x1234"}};
  JobModel job;
  add_recordings(job, {recording});
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.collectives[0].call_site.file, "/gone/a.out");
  EXPECT_EQ(job.collectives[0].call_site.line, 0);
}

TEST(AddRecordings, ACallThatTorchMakesOnAThreadWithoutPythonHasNoLine) {
  sources::Recording recording = recording_of(100, 0);
  recording.calls = {call_in(0, 1)};
  recording.calls[0].stack = {
      {.file = "/opt/site-packages/torch/lib/libtorch_cuda.so", .line = 0, .function = "+0x1234"}};
  JobModel job;
  add_recordings(job, {recording});
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_FALSE(job.collectives[0].call_site.known());
}

TEST(AddRecordings, LeavesOutGroupsThatNobodyCalls) {
  sources::Recording recording = recording_of(100, 0);
  recording.groups.push_back({.name = {}, .backend = "gloo", .group_rank = 0, .size = 4});
  JobModel job;
  add_recordings(job, {recording});
  EXPECT_EQ(job.groups.size(), 1U);
}

TEST(AddRecordings, SurvivesACallOfAGroupThatClaimsToBeIdle) {
  sources::Recording recording = recording_of(100, 0);
  recording.groups.push_back({.name = {}});
  sources::RecordedCall call = call_in(1, 1);
  call.peer = 0;
  recording.calls.push_back(call);
  JobModel job;
  add_recordings(job, {recording});
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_FALSE(job.collectives[0].root);
}

TEST(AddRecordings, TellsTheEndThatAParentSaw) {
  sources::Recording launcher;
  launcher.pid = 10;
  launcher.events.push_back({.kind = "child-exit", .count = 101, .peer = 9});
  JobModel job;
  add_recordings(job, {launcher, recording_of(101, 1)});
  const Process* const dead = process(job, 101);
  ASSERT_NE(dead, nullptr);
  ASSERT_TRUE(dead->exit);
  EXPECT_EQ(dead->exit->signal, 9);
}

TEST(AddRecordings, PutsTheDeadOnTheHostOfTheirJob) {
  JobModel job;
  job.hosts = {"node1"};
  add_recordings(job, {recording_of(100, 0)});
  EXPECT_EQ(rank_process(job, 0)->host, "node1");
  JobModel of_two;
  of_two.hosts = {"node1", "node2"};
  add_recordings(of_two, {recording_of(100, 0)});
  EXPECT_EQ(rank_process(of_two, 0)->host, "");
}

TEST(AddRecordings, LeavesSecretsOutOfCommandsAndOfWhatWasWritten) {
  sources::Recording recording = recording_of(100, 0);
  recording.command = "python t.py --hf-token hunter2 https://me:hunter2@host";
  recording.standard_error = "HF_TOKEN=hunter2\n";
  JobModel job;
  add_recordings(job, {recording});
  EXPECT_EQ(rank_process(job, 0)->command,
            (std::vector<std::string>{"python t.py --hf-token … https://me:…@host"}));
  ASSERT_EQ(job.logs.size(), 1U);
  EXPECT_EQ(job.logs[0].text, "HF_TOKEN=…\n");
}

TEST(AddRecordings, TellsWhichRankItsLauncherEnded) {
  sources::Recording launcher;
  launcher.pid = 10;
  launcher.command = "/usr/bin/hydra_pmi_proxy --proxy-id 0";
  launcher.events.push_back({.kind = "signal-sent", .count = 101, .peer = 9});
  JobModel job;
  add_recordings(job, {launcher, recording_of(101, 1)});
  ASSERT_EQ(facts(job, "cleaned-up").size(), 1U);
  EXPECT_EQ(facts(job, "cleaned-up").front()->rank, 1);
}

TEST(AddRecordings, NamesParametersThatGotNoGradient) {
  sources::Recording recording = recording_of(100, 0);
  recording.reducers.push_back({.parameters = 2,
                                .generation = 3,
                                .ready = 1,
                                .not_ready = {{.index = 1, .name = "router.weight"}}});
  JobModel job;
  add_recordings(job, {recording});
  ASSERT_EQ(facts(job, "reducer").size(), 1U);
  EXPECT_EQ(facts(job, "reducer")[0]->list("not_ready"),
            (std::vector<std::string>{"router.weight"}));
  EXPECT_EQ(facts(job, "reducer")[0]->number("ready"), 1);
}

/// A process 100 whose thread waits for a key that its frames do not show.
JobModel job_in_the_store() {
  Thread thread;
  thread.tid = 100;
  thread.waits_on = WaitsOn{.kind = "store-key", .target = {}, .detail = {}};
  Process process;
  process.pid = 100;
  process.threads.push_back(thread);
  JobModel job;
  job.observations.emplace_back();
  job.observations.back().processes.push_back(process);
  return job;
}

TEST(AddRecordings, NamesTheKeyOfTheStoreThatIsStillWaitedFor) {
  sources::Recording recording = recording_of(100, 0);
  recording.events = {
      {.kind = "store", .state = sources::RecordedState::kCompleted, .text = "plan:0:0"},
      {.kind = "store", .state = sources::RecordedState::kStarted, .text = "eval:0:0"}};
  JobModel job = job_in_the_store();
  add_recordings(job, {recording});
  EXPECT_EQ(job.observations[0].processes[0].threads[0].waits_on->target, "eval:0:0");
}

TEST(AddRecordings, NamesNoKeyThatWasAlreadyThere) {
  sources::Recording recording = recording_of(100, 0);
  recording.events = {
      {.kind = "store", .state = sources::RecordedState::kStarted, .text = "plan:0:0"},
      {.kind = "store", .state = sources::RecordedState::kCompleted, .text = "plan:0:0"}};
  JobModel job = job_in_the_store();
  add_recordings(job, {recording});
  EXPECT_EQ(job.observations[0].processes[0].threads[0].waits_on->target, "");
}

TEST(AddRecordings, ReplacesCallsThatWereReadFromMemory) {
  JobModel job;
  CollectiveCall seen;
  seen.rank = 0;
  seen.group = "0";
  seen.sequence = 40;
  job.collectives.push_back(seen);
  sources::Recording recording = recording_of(100, 0);
  recording.calls.push_back(call_in(0, 1));
  add_recordings(job, {recording});
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.collectives[0].sequence, 1);
}

}  // namespace
}  // namespace ddpdoctor::model
