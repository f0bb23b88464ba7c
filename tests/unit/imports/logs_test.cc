// SPDX-License-Identifier: Apache-2.0
// Messages of torch and NCCL in the output of a job.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/nccl_ras.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

TEST(Detail, AMismatchIsOnePlaceWithTheUsersLine) {
  const auto job = read_log(
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/app/train.py\", line 9, in "
      "main\n[rank1]:     dist.broadcast(t, 0)\n[rank1]: RuntimeError: Detected mismatch between "
      "collectives on ranks. Rank 1 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=21, "
      "OpType=BROADCAST, TensorShape=[1], TensorDtypes=Long, TensorDeviceTypes=TensorOptions("
      "dtype=float (default))), but Rank 0 is running collective: CollectiveFingerPrint("
      "SequenceNumber=0OpType=REDUCE).Collectives differ in the following aspects:\n");
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].rank, 0);
  EXPECT_EQ(job.collectives[0].operation, "reduce");
  EXPECT_EQ(job.collectives[0].sequence, 21);
  EXPECT_EQ(job.collectives[1].operation, "broadcast");
  EXPECT_EQ(job.collectives[1].dtype, "int64");
  EXPECT_EQ(job.collectives[1].call_site.line, 9);
}

TEST(Detail, AMismatchOfTheFirstCallIsKept) {
  const auto job = read_log(
      "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=0, OpType=ALLREDUCE, TensorShape=[4]), but Rank 2 is "
      "running collective: CollectiveFingerPrint(SequenceNumber=0, OpType=ALLREDUCE, "
      "TensorShape=[5]).\n");
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].sequence, 1);
  EXPECT_EQ(job.collectives[1].sequence, 1);
  EXPECT_TRUE(job.coverage.warnings.empty());
  EXPECT_TRUE(model::facts(job, model::kUncountedCalls).empty());
}

TEST(Detail, OfOlderReleasesEachRankNamesItsOwnCall) {
  const auto of = [](const std::string& rank, const std::string& call) {
    return "[rank" + rank +
           "]: RuntimeError: Detected mismatch between collectives on ranks. Rank " + rank +
           " is running inconsistent collective: CollectiveFingerPrint(OpType=" + call + "\n";
  };
  const auto job = read_log(of("6", "BARRIER") + of("2", "BROADCAST, TensorShape=[512])"));
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].rank, 2);
  EXPECT_EQ(job.collectives[0].operation, "broadcast");
  EXPECT_EQ(job.collectives[1].operation, "barrier");
  EXPECT_EQ(job.collectives[1].sequence, job.collectives[0].sequence);
  EXPECT_EQ(model::facts(job, model::kUncountedCalls).size(), 1U);  // they print no number
  EXPECT_TRUE(job.coverage.warnings.empty());
}

TEST(Detail, OfAMismatchOnlyWhoIsNamedMadeACall) {
  const auto job = read_log(
      "[RANK 1] Detected mismatch between collectives on ranks. Rank 1 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=101, OpType=ALLGATHER, TensorShape=[1]), but Rank 7 is "
      "running collective: CollectiveFingerPrint(SequenceNumber=0OpType=REDUCE).\n"
      "[RANK 0] [INFO] Model components unloaded successfully.\n"
      "[rank2]:[W1122 06:24:44.1 ProcessGroupNCCL.cpp:4115] Using GPU 2 to perform barrier\n");
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].rank, 1);
  EXPECT_EQ(job.collectives[1].rank, 7);
  EXPECT_TRUE(job.observations.empty());
  ASSERT_EQ(job.coverage.warnings.size(), 1U);
  EXPECT_NE(job.coverage.warnings[0].find("the number of rank 7's call"), std::string::npos);
}

TEST(MonitoredBarrier, WhoDidNotComeIsBehind) {
  const auto job = read_log(
      "[rank0]: RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 5000 ms\n");
  ASSERT_EQ(job.collectives.size(), 3U);
  EXPECT_EQ(job.collectives[0].rank, 1);
  EXPECT_LT(job.collectives[0].sequence, job.collectives[2].sequence);
  EXPECT_EQ(job.collectives[1].rank, 3);
  EXPECT_EQ(job.collectives[2].operation, "monitored_barrier");
}

TEST(Ras, JsonCountsLaunchesOfEachRank) {
  constexpr std::string_view kJson =
      R"({"nccl_version":"2.29.1","communicators":[{"hash":"0xae","size":3,"ranks":[
      {"rank":0,"collective_counts":{"AllReduce":7,"Broadcast":1}},{"rank":1,"collective_counts":{"AllReduce":6}}],
      "missing_ranks":[{"rank":2,"status":{"unresponsive":true}}]}]})";
  EXPECT_TRUE(is_ras_json(kJson, "x"));
  const auto job = read_ras_json(kJson, "ras.json");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->world_size, 3);
  ASSERT_EQ(job->collectives.size(), 2U);
  EXPECT_EQ(job->collectives[0].sequence, 8);
  EXPECT_EQ(job->collectives[1].sequence, 6);
  EXPECT_TRUE(job->coverage.unobserved_ranks.contains(2));
  EXPECT_EQ(model::facts(*job, "nccl-ras").size(), 2U) << "the whole answer, and who was silent";
}

TEST(Ras, WhoIsConsideredDeadIsTold) {
  constexpr std::string_view kJson =
      R"({"nccl_version":"2.29.1","communicators":[{"hash":"0xae","size":3,"ranks":[
      {"rank":0,"collective_counts":{"AllReduce":7}}],"missing_ranks":[{"rank":1,"status":{"unresponsive":true}},
      {"rank":2,"host":"n1","pid":77,"status":{"considered_dead":true}}]}]})";
  const auto job = read_ras_json(kJson, "ras.json");
  ASSERT_TRUE(job);
  const auto facts = model::facts(*job, "nccl-ras");
  ASSERT_EQ(facts.size(), 3U);
  EXPECT_EQ(facts[1]->rank, 1);
  EXPECT_EQ(facts[1]->flag("considered_dead"), false);
  EXPECT_EQ(facts[2]->rank, 2);
  EXPECT_EQ(facts[2]->pid, 77);
  EXPECT_EQ(facts[2]->text("host"), "n1");
  EXPECT_EQ(facts[2]->flag("considered_dead"), true);
}

/// The same communicator has a block under Errors and one under Warnings.
std::string ras_of_a_death(std::string_view before) {
  std::string out;
  for (const std::string_view line : base::split(
           "NCCL version 2.24.3 compiled with CUDA 12.6\nJob summary\n===========\n"
           "Communicators... (2.05s)\n=============\n\n"
           "    0         1         4       7-8        8        8   RUNNING  INCOMPLETE\n\n"
           "Errors\n======\n\nDEAD\n  1 job process is considered dead (unreachable via the RAS "
           "network)\n  Process 77 on node n1 managing GPU 5\n\n#0-0 (cf26) INCOMPLETE\n"
           "  Missing communicator data from 1 rank\n  The missing rank: 5\n\nWarnings\n"
           "========\n\n#0-0 (cf26) MISMATCH\n  Communicator ranks have different AllReduce "
           "operation counts\n  6 ranks have launched up to operation 64\n  1 rank has launched up "
           "to operation 63\n  Rank 0 -- GPU 0 managed by process 70 on node n0",
           '\n')) {
    out += fmt::format("{}{}\n", before, line);
  }
  return out;
}

TEST(Ras, TheDeadProcessIsTheOneMissingRank) {
  for (const std::string_view before : {"", "2026-11-22T19:15:00.1234567Z "}) {
    const auto job = read_log(ras_of_a_death(before));
    const auto facts = model::facts(job, "nccl-ras");
    ASSERT_EQ(facts.size(), 2U) << before;
    EXPECT_EQ(facts[1]->rank, 5);
    EXPECT_EQ(facts[1]->pid, 77);
    EXPECT_EQ(facts[1]->text("host"), "n1");
    EXPECT_EQ(facts[1]->flag("considered_dead"), true);
    ASSERT_EQ(job.collectives.size(), 7U);
    EXPECT_EQ(job.collectives[0].sequence, 63);
    EXPECT_EQ(job.collectives[1].sequence, 64);
    EXPECT_TRUE(job.coverage.warnings.empty()) << job.coverage.warnings.front();
  }
}

TEST(Ras, TextNamesTheOutliers) {
  const auto job = read_log(
      "NCCL version 2.30.7 compiled with CUDA 12.8\nJob summary\n===========\nCommunicators... "
      "(0.00s)\n=============\n    0         1          2         4         8         8  RUNNING  "
      "MISMATCH\n\nWarnings\n========\n\n#0-0 (78db921d1c117b4a) MISMATCH\n  Communicator ranks "
      "have "
      "different AllReduce operation counts\n  7 ranks have launched up to operation 64\n  Rank 7 "
      "has "
      "launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1\n");
  EXPECT_EQ(job.world_size, 8);
  ASSERT_EQ(job.collectives.size(), 8U);
  EXPECT_EQ(job.collectives[0].sequence, 64);
  EXPECT_EQ(job.collectives[7].rank, 7);
  EXPECT_EQ(job.collectives[7].sequence, 60);
  EXPECT_EQ(job.collectives[7].operation, "all_reduce");
}

TEST(Logs, ZeroBytesAtTheEndsAreNoPartOfALog) {
  const std::string text =
      std::string(100, '\0') + "[rank1]: ValueError: no\n" + std::string(9, '\0');
  EXPECT_TRUE(is_log(text, "job.log"));
  EXPECT_TRUE(read_log(text).logs.at(0).text.starts_with("[rank1]: ValueError: no\n"));
  EXPECT_FALSE(is_log(std::string("\x7f"
                                  "ELF\0\1",
                                  6) +
                          text + "x",
                      "a.out"));
}

TEST(Logs, LabelsOfSrunAreRanks) {
  const auto job = read_log(
      "0: step 1\n1: step 1\n0: step 2\n1: Traceback (most recent call last):\n1:   File\n");
  ASSERT_EQ(job.logs.size(), 1U);
  EXPECT_NE(job.logs[0].text.find("[rank1]:   File"), std::string::npos);
}

std::string said_by_hosts(std::string_view inner) {
  std::string out;
  for (int i = 0; i < 10; ++i) {
    out += fmt::format("node10: {}step {}\nnode9: {}step {}\n", inner, i, inner, i);
  }
  return out;
}

TEST(Logs, HostsOfPdshStandForRanksInTheOrderOfTheirNumbers) {
  const auto job = read_log(said_by_hosts("") +
                            "node10: Traceback (most recent call last):\n"
                            "node10:   File \"/srv/train.py\", line 3, in main\n"
                            "node10: ValueError: no\n");
  EXPECT_EQ(model::read_log_line(base::split(job.logs.front().text, '\n').front()).rank, 1);
  ASSERT_EQ(job.coverage.warnings.size(), 1U);
  EXPECT_NE(job.coverage.warnings[0].find("rank 0 is node9, rank 1 is node10"), std::string::npos);
}

TEST(Logs, BehindTheNameOfAHostALineMayNameItsRank) {
  const auto job = read_log(said_by_hosts("[rank7]: "));
  EXPECT_EQ(model::read_log_line(base::split(job.logs.front().text, '\n').front()).rank, 7);
  EXPECT_TRUE(job.coverage.warnings.empty());
}

TEST(Logs, WordsOfOneShapeBeforeAFewLinesAreNoHosts) {
  std::string log;
  for (int i = 0; i < 20; ++i) {
    log += fmt::format("loss of step {} is small\nepoch{}: done\n", i, i);
  }
  EXPECT_FALSE(model::read_log_line(base::split(read_log(log).logs.front().text, '\n')[1]).rank);
}

std::string gave_up(int rank, std::string_view exception) {
  return fmt::format(
      "[rank{0}]: Traceback (most recent call last):\n"
      "[rank{0}]:   File \"/srv/train.py\", line 16, in main\n"
      "[rank{0}]:     dist.all_reduce(x)\n"
      "[rank{0}]:   File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", "
      "line 3252, in all_reduce\n"
      "[rank{0}]:     work.wait()\n"
      "[rank{0}]: RuntimeError: {1}\n",
      rank, exception);
}

constexpr std::string_view kGlooTimeout =
    "[../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 6000ms for recv operation to "
    "complete";

TEST(TimedOut, ATracebackIsTheStackOfARankThatWaited) {
  const auto job = read_log("[rank2]: loading\n" + gave_up(0, kGlooTimeout) +
                            gave_up(1, "Connection closed by peer [127.0.0.1]:1"));
  const model::Process* process = model::rank_process(job, 0);
  ASSERT_NE(process, nullptr);
  ASSERT_EQ(process->threads.front().frames.size(), 2U);
  EXPECT_EQ(process->threads.front().frames[0].function, "all_reduce");
  EXPECT_EQ(process->threads.front().frames[1].line, 16);
  EXPECT_EQ(job.sources.at("/srv/train.py").at(16), "dist.all_reduce(x)");
  EXPECT_EQ(job.progress, model::Progress::kStill);
  EXPECT_EQ(model::ranks_seen(job), model::RankSet({0, 1, 2}));
  EXPECT_TRUE(model::rank_process(job, 2)->threads.front().frames.empty());
}

TEST(TimedOut, AConnectionLostAfterTheWatchdogOfAnotherIsTheEndOfAWait) {
  const std::string watchdog =
      "[rank1]:[E810 03:04:11.0 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog caught collective "
      "operation timeout: WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=4, NumelOut=4, "
      "Timeout(ms)=600000) ran for 600096 milliseconds before timing out.\n";
  const std::string lost = gave_up(0, "Connection closed by peer [192.0.2.7]:57000");
  const auto waited = read_log(watchdog + lost);
  ASSERT_NE(model::rank_process(waited, 0), nullptr);
  EXPECT_EQ(model::rank_process(waited, 0)->threads.at(0).frames.at(1).line, 16);
  const auto first = read_log(lost + watchdog);  // whose end it felt is unknown
  EXPECT_TRUE(model::rank_process(first, 0) == nullptr ||
              model::rank_process(first, 0)->threads.at(0).frames.empty());
}

TEST(TimedOut, OfTheWorldASilentRankIsTheOneThatDidNotCome) {
  const auto timeout = [](int rank) {
    return fmt::format(
        "[rank{0}]:[E1120 03:14:07.5 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught "
        "collective "
        "operation timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, "
        "Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n",
        rank);
  };
  const auto job =
      read_log("[rank1]: writing a checkpoint\n" + timeout(0) + timeout(2) +
               "Root Cause (first observed failure):\n[0]:\n  rank      : 0 (local_rank: "
               "0)\n  exitcode  : -6 (pid: 11)\n=====\n");
  // The watchdog's abort is not an end of the rank.
  EXPECT_EQ(model::rank_process(job, 0), nullptr);
  ASSERT_NE(model::rank_process(job, 1), nullptr);
  ASSERT_FALSE(job.collectives.empty());
  EXPECT_EQ(job.collectives.back().rank, 1);
  EXPECT_EQ(job.collectives.back().sequence, 87);
  EXPECT_EQ(model::group(job, "0")->ranks, (std::vector<model::Rank>{0, 1, 2}));
}

TEST(TimedOut, WhoFailedByItselfWaitedForNobody) {
  const auto job =
      read_log(gave_up(0, kGlooTimeout) + gave_up(1, "no such key") + gave_up(1, kGlooTimeout));
  EXPECT_EQ(model::ranks_seen(job), model::RankSet({0}));
}

TEST(TimedOut, HowItEndedSaysNothingAndWhoWasEndedLived) {
  const auto job =
      read_log(gave_up(0, kGlooTimeout) +
               "Failures:\n[1]:\n  rank      : 2 (local_rank: 2)\n  exitcode  : -15 (pid: "
               "13)\nRoot Cause (first observed failure):\n[0]:\n  rank      : 0 "
               "(local_rank: 0)\n  exitcode  : 1 (pid: 11)\n=====\n");
  EXPECT_FALSE(model::rank_process(job, 0)->exit);
  ASSERT_NE(model::rank_process(job, 2), nullptr);
  EXPECT_FALSE(model::rank_process(job, 2)->exit);
}

TEST(Logs, ANumberBeforeALineIsNotAlwaysARank) {
  const auto job =
      read_log("12: warning\nTraceback (most recent call last):\n13: x\nplain\nplain\n");
  EXPECT_EQ(job.logs[0].text.find("[rank"), std::string::npos);
}

TEST(Logs, AFileOfOneRankIsItsLog) {
  EXPECT_EQ(read_log("RuntimeError: x\n", "logs/abc/attempt_0/3/stderr.log").logs[0].rank, 3);
}

TEST(Logs, AnEmptyOneTellsThatItsRankWroteNothing) {
  const auto job = read_empty_log("logs/attempt_0/2/stderr.log");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->logs.at(0).rank, 2);
  EXPECT_FALSE(read_empty_log("logs/attempt_0/2/marker"));
  EXPECT_FALSE(read_empty_log("job.log"));
}

TEST(Logs, OfAVeryLongOneTheTellingLinesAreKept) {
  std::string text = "[rank1]: ValueError: first\n";
  for (int i = 0; i < 400'000; ++i) {
    text += "step " + std::to_string(i) + " loss 0.1\n";
  }
  const auto job = read_log(text + "[rank0]: ChildFailedError\n");
  EXPECT_LT(job.logs[0].text.size(), 8000U);
  EXPECT_NE(job.logs[0].text.find("ValueError: first"), std::string::npos);
}

TEST(Logs, AreKnownByTheirWords) {
  EXPECT_TRUE(is_log("[rank3]: hello\n", "x.txt"));
  EXPECT_TRUE(is_log("Traceback (most recent call last):\n", "x"));
  EXPECT_TRUE(is_log("hello\n", "a/stderr.log"));
  EXPECT_FALSE(is_log("hello\n", "readme.txt"));
  EXPECT_TRUE(is_log("INFO 09-03 10:50:12 [shm_broadcast.py:466] No available block found\n", "x"));
  EXPECT_TRUE(
      is_log("gpu7:18553:18611 [0] include/socket.h:360 WARN Call to connect failed\n", "x"));
  EXPECT_FALSE(is_log(std::string_view("RuntimeError\0x", 14), "x.log"));
}

TEST(Logs, ATextThatTellsOfAnErrorMayBeNamedAnyhow) {
  EXPECT_TRUE(tells_of_trouble("rank 2 of 4 on node2: ERROR cannot open uverbs0\n"));
  EXPECT_TRUE(tells_of_trouble("No available block found in 60 second.\n"));
  EXPECT_FALSE(tells_of_trouble("hello\n"));
  EXPECT_FALSE(tells_of_trouble("{\"error\": 1}"));
  EXPECT_FALSE(tells_of_trouble(std::string_view("error\0\x01", 7)));
}

TEST(Logs, OfALocalRankTheNodeIsNotKnown) {
  const auto job = read_log("[ERROR] failed (exitcode: -6) local_rank: 5 (pid: 12) of binary: x\n");
  ASSERT_EQ(job.coverage.warnings.size(), 1U);
  EXPECT_NE(job.coverage.warnings.front().find("local rank 5"), std::string::npos);
}

TEST(Logs, ATerminalCopyHasAPromptAndACommand) {
  for (const char* const text :
       {"$ rocm-smi\n=== ROCm ===\n", "root@n1:/work# nvidia-smi\n", "[me@n1 tests]$ ls -l\n",
        "(base) me@n1:~$ python train.py\n", "me@mac tests % ls\n"}) {
    EXPECT_TRUE(is_terminal_copy(text)) << text;
  }
  for (const char* const text : {"a price of 5$ each\n", "# a heading\n", "me@example.org wrote\n",
                                 "$PATH\n", "x@y: 100% done\n"}) {
    EXPECT_FALSE(is_terminal_copy(text)) << text;
  }
}

}  // namespace
}  // namespace ddpdoctor::imports
