// SPDX-License-Identifier: Apache-2.0
// Titles of serving processes in dumps, and gdb's bt of one thread.
#include "collector/imports/stack_dumps/process_titles.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::string dump(int pid, std::string_view title) {
  return fmt::format(
      "Process {0}: {1}\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread {0} (active): "
      "\"MainThread\"\n    recv_requests (sglang/srt/managers/scheduler.py:1126)\n    "
      "run_scheduler_process (sglang/srt/managers/scheduler.py:2707)\n    run "
      "(multiprocessing/process.py:108)\n    _bootstrap (multiprocessing/process.py:314)\n\n",
      pid, title);
}

TEST(ProcessTitles, NameRankAndRole) {
  const auto job =
      read_dump(dump(904, "sglang::scheduler_PP1_TP1") + dump(903, "sglang::scheduler_PP1_TP0") +
                dump(902, "sglang::scheduler_PP0_TP1") + dump(901, "sglang::scheduler_PP0_TP0") +
                dump(900, "sglang::detokenizer"));
  ASSERT_NE(model::rank_process(job, 2), nullptr);
  EXPECT_EQ(model::rank_process(job, 2)->pid, 903);
  EXPECT_EQ(model::ranks_seen(job).size(), 4U);
  EXPECT_EQ(role_of_title({"VLLM::EngineCore_DP0"}), model::Role::kOther);
  EXPECT_EQ(role_of_title({"VLLM::Worker_TP2"}), model::Role::kRank);
  EXPECT_EQ(role_of_title({"pt_elastic"}), model::Role::kLauncher);
  EXPECT_FALSE(role_of_title({"ray::WorkerDict.actor_rollout_update_actor"}));
  EXPECT_FALSE(role_of_title({"python", "train.py"}));
}

TEST(ProcessTitles, WithGapsShowThatOtherRanksExist) {
  const auto job =
      read_dump(dump(901, "sglang::scheduler_PP1_TP1") + dump(902, "sglang::scheduler_PP3_TP0"));
  EXPECT_EQ(job.world_size, 8);
  ASSERT_NE(model::rank_process(job, 6), nullptr);
  EXPECT_EQ(model::rank_process(job, 6)->pid, 902);
  EXPECT_EQ(job.coverage.unobserved_ranks.size(), 6U);
}

TEST(ProcessTitles, EnginesWithoutWorkersAreRanks) {
  const std::string engines = dump(901, "VLLM::EngineCore_DP0") + dump(902, "VLLM::EngineCore_DP1");
  const auto alone = read_dump(engines);
  ASSERT_NE(model::rank_process(alone, 1), nullptr);
  EXPECT_EQ(model::rank_process(alone, 1)->pid, 902);
  const auto served =
      read_dump(engines + dump(911, "VLLM::Worker_TP0") + dump(912, "VLLM::Worker_TP1"));
  EXPECT_EQ(model::rank_process(served, 1)->pid, 912);
  EXPECT_EQ(model::ranks_seen(served).size(), 2U);
}

TEST(ProcessTitles, TwoContainersWithOnePidAreTwoProcesses) {
  const auto job =
      read_dump(dump(303, "sglang::scheduler_TP0") + dump(303, "sglang::scheduler_TP1"));
  EXPECT_EQ(job.observations.size(), 1U);
  EXPECT_EQ(model::ranks_seen(job).size(), 2U);
}

TEST(ProcessTitles, TheSamePlaceTwiceIsNoRank) {
  const auto job =
      read_dump(dump(303, "sglang::scheduler_TP0") + dump(404, "sglang::scheduler_TP0"));
  EXPECT_EQ(job.coverage.warnings.size(), 1U);  // numbered by their pids
  EXPECT_NE(job.coverage.warnings.at(0).find("pids"), std::string::npos);
}

TEST(Gdb, OneThreadWithoutAHeadingIsRead) {
  constexpr std::string_view kThread =
      "#0  0x00007ffff in __poll (fds=0x7f, nfds=1) at ../sysdeps/poll.c:29\n"
      "#1  0x00007fffe in ncclProxyProgress (proxyState_=0x55) at proxy.cc:874\n"
      "    from somewhere\n"
      "#2  0x00007fffd in start_thread () from /lib/x86_64-linux-gnu/libc.so.6\n";
  EXPECT_TRUE(is_gdb(kThread, "x"));
  EXPECT_TRUE(is_gdb("(gdb) bt\n" + std::string(kThread), "x"));
  const auto job = read_dump(kThread);
  ASSERT_EQ(only(job).threads.size(), 1U);
  EXPECT_EQ(only(job).threads[0].frames.size(), 3U);
  EXPECT_FALSE(is_gdb("#0 first\n#1 second\n", "x"));
  EXPECT_FALSE(is_gdb("#0  a in b ()\n", "x"));
}

}  // namespace
}  // namespace ddpdoctor::imports
