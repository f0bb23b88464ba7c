// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::optional<model::Exit> exit_of(const model::JobModel& job, model::Rank rank) {
  const model::Process* process = model::rank_process(job, rank);
  return process == nullptr ? std::nullopt : process->exit;
}

TEST(ServerText, SchedulersOfSglangAndTheirExitCodes) {
  const auto job = read_log(
      "[01-28 04:18:10] Rank 1 scheduler is dead. Please check if there are relevant logs.\n"
      "[01-28 04:18:11] Exit code: -9\n");
  ASSERT_TRUE(exit_of(job, 1));
  EXPECT_EQ(exit_of(job, 1)->signal, SIGKILL);
  EXPECT_TRUE(read_log("Exit code: -9\n").observations.empty());
}

TEST(ServerText, TheWatchdogOfSglangEndsARankThatWaits) {
  const std::string stack =
      "Fatal Python error: Aborted\n\n"
      "Thread 0x00007f30d5b4f000 (most recent call first):\n"
      "  File \"/srv/dp_attention.py\", line 826 in dp_scatter\n"
      "  File \"/srv/scheduler.py\", line 4318 in <module>\n";
  const std::string told =
      "[2026-08-11 09:42:10 TP1] Scheduler watchdog timeout (watchdog_timeout=300, soft=False)\n";
  const auto job = read_log(told + stack);
  const model::Process* process = model::rank_process(job, 1);
  ASSERT_NE(process, nullptr);
  EXPECT_FALSE(process->exit);
  ASSERT_FALSE(process->threads.empty());
  EXPECT_EQ(process->threads[0].frames.size(), 2U);
}

TEST(ServerText, RanksOfComposerAndShardsOfTgi) {
  const auto composer = read_log(
      "ERROR:composer.cli.launcher:Rank 3 crashed with exit code 1.\n"
      "Global rank 0 (PID 6101) exited with code -15\n");
  ASSERT_TRUE(exit_of(composer, 3));
  EXPECT_EQ(exit_of(composer, 3)->status, 1);
  EXPECT_FALSE(exit_of(composer, 0));
  const auto shard = read_log(
      "ERROR shard-manager: text_generation_launcher: Shard process was signaled to shutdown with "
      "signal 9 rank=2\n");
  ASSERT_TRUE(exit_of(shard, 2));
  EXPECT_EQ(exit_of(shard, 2)->signal, SIGKILL);
}

TEST(WatchdogAborts, TheStackBelongsToTheRankThatTimedOut) {
  const auto job = read_log(
      "  what():  [Rank 2] Watchdog caught collective operation timeout: "
      "WorkNCCL(OpType=BROADCAST, TensorShape=[4], Timeout(ms)=1800000) ran for 1803170 "
      "milliseconds before timing out.\n"
      "Fatal Python error: Aborted\n\n"
      "Thread 0x00007f1b2c3d4700 (most recent call first):\n"
      "  File \"/srv/train.py\", line 61 in sync\n");
  const model::Process* process = model::rank_process(job, 2);
  ASSERT_NE(process, nullptr);
  EXPECT_FALSE(process->exit);
  EXPECT_EQ(process->threads.at(0).frames.at(0).line, 61);
}

TEST(WatchdogAborts, OfSeveralRanksAStackWithoutARankIsOfNone) {
  const std::string timed_out =
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, "
      "NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n";
  const auto job =
      read_log("[rank3]:[E908 08:39:25.1 ProcessGroupNCCL.cpp:685] [Rank 3] " + timed_out +
                   "[rank6]:[E908 08:39:25.1 ProcessGroupNCCL.cpp:685] [Rank 6] " + timed_out +
                   "Fatal Python error: Aborted\n\n"
                   "Thread 0x00007f1b2c3d4700 (most recent call first):\n"
                   "  File \"/srv/train.py\", line 61 in sync\n",
               "prefill-0.log");
  for (const model::Process& process : job.observations.back().processes) {
    EXPECT_FALSE(process.exit);
    EXPECT_TRUE(process.rank || process.role == model::Role::kOther);
  }
}

TEST(WatchdogAborts, AnAbortWithoutATimeoutIsACrash) {
  const auto job = read_log(
      "Fatal Python error: Aborted\n\n"
      "Thread 0x00007f1b2c3d4700 (most recent call first):\n"
      "  File \"/srv/train.py\", line 61 in sync\n");
  ASSERT_EQ(job.observations.size(), 1U);
  EXPECT_TRUE(job.observations[0].processes.at(0).exit);
}

TEST(AgentRanks, TheOnlyRankOfAnAgentWroteItsLog) {
  const auto one = read_log("  global_ranks=[1]\n  global_world_sizes=[2]\nTraceback\nError: a\n");
  ASSERT_EQ(one.logs.size(), 1U);
  EXPECT_EQ(one.logs[0].rank, 1);
  EXPECT_FALSE(read_log("  global_ranks=[0, 1]\nError: a\n").logs.at(0).rank);
  EXPECT_FALSE(read_log("  global_ranks=[0]\n  global_ranks=[1]\nError: a\n").logs.at(0).rank);
}

}  // namespace
}  // namespace ddpdoctor::imports
