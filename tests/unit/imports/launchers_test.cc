// SPDX-License-Identifier: Apache-2.0
// What launchers write about the ends of ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/imports/logs/text_file.h"
#include "collector/imports/logs/torchrun_text.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

TEST(Launchers, LightningTellsWhichOfItsChildrenEnded) {
  const auto job = read_log(
      "[rank: 1] Child process with PID 40112 terminated with code -9. Forcefully terminating all "
      "other processes to avoid zombies\n");
  ASSERT_EQ(job.observations.size(), 1U);
  const model::Process& process = job.observations[0].processes.at(0);
  EXPECT_EQ(process.rank, 1);
  EXPECT_EQ(process.pid, 40'112);
  EXPECT_EQ(process.exit->signal, 9);
}

TEST(Launchers, AShellTellsTheCommandOfTheChildThatASignalEnded) {
  const std::string line = "./go.sh: line 14: 2015 ";
  const auto job = read_log(line + "Killed                  RANK=5 python a.py > 5.log\n");
  ASSERT_EQ(job.observations.size(), 1U);
  const model::Process& process = job.observations[0].processes.at(0);
  EXPECT_EQ(process.rank, 5);
  EXPECT_EQ(process.pid, 2015);
  EXPECT_EQ(process.exit->signal, 9);
  EXPECT_TRUE(read_log(line + "Killed                  sleep 100\n").observations.empty());
  EXPECT_TRUE(read_log(line + "Terminated              RANK=5 python a.py\n").observations.empty());
}

TEST(Launchers, DeepSpeedTellsTheReturnCodeOfTheFirstToEnd) {
  const std::string node =
      "[2026-11-20 10:00:00,123] [INFO] [launch.py:164:main] nnodes=2, num_local_procs=4, "
      "node_rank=1\n";
  const auto fell = [](const std::string& code) {
    return "[2026-11-20 10:07:31,006] [INFO] [launch.py:319:sigkill_handler] Killing subprocess "
           "4711\n[2026-11-20 10:07:31,007] [ERROR] [launch.py:325:sigkill_handler] "
           "['/usr/bin/python3', '-u', 'train.py', '--local_rank=3'] exits with return code = " +
           code + "\n";
  };
  const auto killed = read_log(node + fell("-9"));
  ASSERT_NE(model::rank_process(killed, 7), nullptr);
  EXPECT_EQ(model::rank_process(killed, 7)->exit->signal, 9);
  const auto failed = read_log(node + fell("1"));
  ASSERT_NE(model::rank_process(failed, 7), nullptr);
  EXPECT_EQ(failed.observations.at(0).processes.size(), 1U);
  EXPECT_EQ(model::rank_process(failed, 7)->exit->status, 1);
  // Two nodes write into one log: it does not show whose local rank 3 it is.
  EXPECT_EQ(model::rank_process(read_log(node + node + fell("-9")), 7), nullptr);
  // Of a log that begins later: the one that was killed, as on the first node.
  const auto late = read_log(fell("-9"));
  ASSERT_NE(model::rank_process(late, 3), nullptr);
  EXPECT_EQ(late.coverage.warnings.size(), 1U);
  EXPECT_EQ(model::rank_process(read_log(fell("1")), 3), nullptr);
  EXPECT_EQ(model::rank_process(read_log(fell("-9") + fell("-9")), 3), nullptr);
}

TEST(Launchers, OpenMpiTellsWhoExitedFirstWithAStatus) {
  const auto told = [](const std::string& name) {
    return "--------\nmpirun detected that one or more processes exited with non-zero status, thus "
           "causing\nthe job to be terminated. The first process to do so was:\n\n  Process "
           "name: " +
           name + "\n  Exit code:    1\n--------\n";
  };
  for (const char* name : {"[[29973,1],2]", "[prterun-node1-7@1,2]"}) {
    const auto job = read_log(told(name));
    ASSERT_NE(model::rank_process(job, 2), nullptr) << name;
    EXPECT_EQ(model::rank_process(job, 2)->exit->status, 1);
  }
}

TEST(Launchers, TellWhoWasKilled) {
  const auto mpi = read_log(
      "mpirun noticed that process rank 2 with PID 21183 on node host01 exited on signal 11 "
      "(Segmentation fault).\n");
  ASSERT_NE(model::rank_process(mpi, 2), nullptr);
  EXPECT_EQ(model::rank_process(mpi, 2)->exit->signal, 11);
  EXPECT_EQ(model::rank_process(mpi, 2)->host, "host01");
  const auto spawn = read_log(
      "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal "
      "SIGKILL\n");
  ASSERT_NE(model::rank_process(spawn, 3), nullptr);
  EXPECT_EQ(model::rank_process(spawn, 3)->exit->signal, 9);
}

TEST(Launchers, DoNotAccuseWhomTheyEndThemselves) {
  const auto job = read_log(
      "srun: error: node1: task 1: Out Of Memory\nsrun: Job step aborted: Waiting\n"
      "srun: error: node0: task 0: Killed\n");
  ASSERT_NE(model::rank_process(job, 1), nullptr);
  EXPECT_EQ(model::rank_process(job, 1)->exit->signal, 9);
  EXPECT_EQ(model::rank_process(job, 0), nullptr);
  EXPECT_EQ(
      model::rank_process(read_log("E1 torch/distributed/elastic/api.py\nsrun: error: n: task 1: "
                                   "Killed\n"),
                          1),
      nullptr);
}

constexpr std::string_view kTable = R"(
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-20_12:34:57
  host      : node1
  rank      : 5 (local_rank: 1)
  exitcode  : -15 (pid: 778)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 778
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-20_12:34:56
  host      : node0
  rank      : 3 (local_rank: 3)
  exitcode  : -9 (pid: 777)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 777
============================================================
)";

TEST(Torchrun, ItsTableTellsHowRanksEnded) {
  const auto job = read_log(kTable);
  EXPECT_TRUE(job.ended);
  const auto* first = model::rank_process(job, 3);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->exit->signal, 9);
  EXPECT_EQ(first->pid, 777);
  EXPECT_EQ(first->host, "node0");
  EXPECT_EQ(model::rank_process(job, 5), nullptr);  // ended by torchrun itself
}

TEST(Torchrun, WhoWasEndedIsNotTheFirstToFailWhateverItsTableSays) {
  const auto entry = [](int rank, const std::string& code) {
    return fmt::format("[{0}]:\n  rank      : {0} (local_rank: {0})\n  exitcode  : {1}\n", rank,
                       code);
  };
  const std::string root = "Root Cause (first observed failure):\n";
  const auto ended =
      read_log("Failures:\n" + entry(2, "3 (pid: 8)") + entry(1, "-15 (pid: 7) (SIGTERM)") + root +
               entry(0, "-15 (pid: 6) (SIGTERM)") + "=====\n");
  EXPECT_EQ(model::rank_process(ended, 0), nullptr);
  ASSERT_NE(model::rank_process(ended, 2), nullptr);
  EXPECT_EQ(model::rank_process(ended, 2)->exit->status, 3);
  EXPECT_TRUE(model::facts(ended, "first-failure").empty());
  const auto told =
      read_log("Failures:\n" + entry(1, "1 (pid: 7)") + root + entry(2, "3 (pid: 8)"));
  const auto first = model::facts(told, "first-failure");
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0]->rank, 2);
  // Only SIGTERM: the job was ended from outside, and no rank is more likely than another.
  const auto outside = read_log("Failures:\n" + root + entry(0, "-15 (pid: 6) (SIGTERM)"));
  EXPECT_NE(model::rank_process(outside, 0), nullptr);
}

TEST(Torchrun, AnErrorFileIsTheLogOfItsRank) {
  constexpr std::string_view kFile =
      R"({"message":{"message":"ValueError: no","extraInfo":{"py_callstack":"Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nValueError: no\n","timestamp":"1700000000"}}})";
  EXPECT_TRUE(is_error_file(kFile, "x"));
  const auto job = read_error_file(kFile, "attempt_0/2/error.json");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->logs[0].rank, 2);
  ASSERT_EQ(model::facts(*job, "error-file").size(), 1U);
  EXPECT_EQ(model::facts(*job, "error-file")[0]->rank, 2);
  EXPECT_TRUE(job->logs[0].text.starts_with("2023-11-14T22:13:20 Traceback")) << job->logs[0].text;
  EXPECT_FALSE(read_error_file(R"({"message":{"message":3,"extraInfo":[]}})", "x"));
}

TEST(Torchrun, WithoutItsTableTheLineOfTheFirstFailureTells) {
  const auto job = read_log(
      "E1120 api.py:869] failed (exitcode: -9) local_rank: 3 (pid: 4242) of binary: "
      "/usr/bin/python\n",
      "torchrun.log");
  ASSERT_NE(model::rank_process(job, 3), nullptr);
  EXPECT_EQ(model::rank_process(job, 3)->exit->signal, 9);
  EXPECT_EQ(
      model::rank_process(read_log("x failed (exitcode: 1) local_rank: 3 (pid: 4)\n", "a.log"), 3),
      nullptr);
}

TEST(Launchers, TheFirstBoxOfIntelMpiIsOfTheFirstProcess) {
  const auto job = read_log(
      "===================================================\n"
      "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
      "=   RANK 3 PID 12345 RUNNING AT node7\n=   KILLED BY SIGNAL: 11 (Segmentation fault)\n"
      "===================================================\n"
      "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
      "=   RANK 0 PID 12342 RUNNING AT node7\n=   KILLED BY SIGNAL: 9 (Killed)\n");
  const model::Process& process = only(job);
  EXPECT_EQ(process.rank, 3);
  EXPECT_EQ(process.pid, 12345);
  EXPECT_EQ(process.host, "node7");
  EXPECT_EQ(process.exit->signal, 11);
}

}  // namespace
}  // namespace ddpdoctor::imports
