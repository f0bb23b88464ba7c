// SPDX-License-Identifier: Apache-2.0
// Messages of NCCL's watchdog and torch's desync report in the output of a job.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/logs/torchrun_text.h"
#include "collector/imports/nccl_ras.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

TEST(Watchdog, TimeoutsAreCallsOfTheirGroup) {
  const auto job = read_log(
      "[rank0]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective "
      "operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, "
      "Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n"
      "[rank1]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective "
      "operation timeout: WorkNCCL(SeqNum=1580, OpType=_ALLGATHER_BASE, NumelIn=8, NumelOut=16, "
      "Timeout(ms)=600000) ran for 600061 milliseconds before timing out.\n"
      "[rank0]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:1664] [PG ID 0 PG GUID 7(tp) Rank 0] "
      "Exception "
      "(either an error or timeout) detected by watchdog at work: 1580, last enqueued NCCL work: "
      "1582, last completed NCCL work: 1579.\n");
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].group, "7");
  EXPECT_EQ(job.collectives[0].operation, "all_reduce");
  EXPECT_EQ(job.collectives[0].count, 4096);
  EXPECT_EQ(job.collectives[0].sequence, 1580);
  EXPECT_EQ(job.collectives[1].rank, 1);
  EXPECT_EQ(job.collectives[1].operation, "all_gather_into_tensor");
  EXPECT_TRUE(job.ended);
  ASSERT_NE(model::group(job, "7"), nullptr);
  EXPECT_EQ(model::group(job, "7")->name, "tp");
}

TEST(Watchdog, WhoHasBegunTheCallsOfOthersIsNotBehindThem) {
  const auto told = [](int rank, int stands, int begun) {
    return fmt::format(
        "[rank{0}]:[E6 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n"
        "[rank{0}]:[E6 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {0}] "
        "Exception (either an error or timeout) detected by watchdog at work: {1}, last enqueued "
        "NCCL work: {2}, last completed NCCL work: {3}.\n",
        rank, stands, begun, stands - 1);
  };
  const auto job = read_log(told(0, 808, 811) + told(1, 808, 808) + told(2, 809, 809));
  std::vector<std::pair<model::Rank, std::int64_t>> calls;
  for (const auto& call : job.collectives) {
    calls.emplace_back(call.rank, call.sequence);
  }
  const std::vector<std::pair<model::Rank, std::int64_t>> expected = {
      {0, 808}, {1, 808}, {2, 809}, {0, 809}, {2, 808}};
  ASSERT_EQ(calls, expected);
  EXPECT_EQ(job.collectives[3].state, model::CallState::kEnqueued);
  EXPECT_EQ(job.collectives[3].operation, "");
  EXPECT_EQ(job.collectives[4].state, model::CallState::kCompleted) << "its last completed work";
}

TEST(Watchdog, WhoIsFarBehindSpeaksOfAnotherGroup) {
  const auto line = [](int rank, int sequence) {
    return "[E ProcessGroupNCCL.cpp:458] [Rank " + std::to_string(rank) +
           "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" +
           std::to_string(sequence) + ", OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1 ms\n";
  };
  const auto job = read_log(line(0, 96'120) + line(7, 64'088));
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.collectives[0].rank, 0);
}

std::string timeout_of(int rank, int sequence, std::string_view before = "") {
  return fmt::format(
      "{}[E ProcessGroupNCCL.cpp:458] [Rank {}] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum={}, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1 ms\n",
      before, rank, sequence);
}

std::string status_of(int rank, int sequence, std::string_view group) {
  return fmt::format(
      "[rank{0}]:[E ProcessGroupNCCL.cpp:1664] [{2} Rank {0}] Timeout at NCCL work: {1}, last "
      "enqueued NCCL work: {1}, last completed NCCL work: 1.\n",
      rank, sequence, group);
}

TEST(Watchdog, OfSeveralNumbersOfOneRankThatOfMostRanksIsKept) {
  const auto job = read_log(timeout_of(0, 96'120) + timeout_of(0, 96'117) + timeout_of(1, 96'120) +
                            timeout_of(2, 5) + timeout_of(2, 7));
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].sequence, 96'120);
  EXPECT_EQ(job.collectives[1].sequence, 96'120);
  EXPECT_TRUE(job.coverage.unobserved_ranks.contains(2)) << "it timed out in another group";
}

TEST(Watchdog, WhoSaysNothingAmongManyWhoSpeakIsBehind) {
  std::string log;
  for (const int rank : {0, 1, 3}) {
    log += timeout_of(rank, 9, fmt::format("[rank{}]:", rank));
  }
  const auto job = read_log(log);
  EXPECT_TRUE(job.coverage.unobserved_ranks.empty());
  EXPECT_EQ(std::count_if(job.collectives.begin(), job.collectives.end(),
                          [](const auto& call) { return call.rank == 2 && call.sequence == 8; }),
            1);
}

TEST(Watchdog, OfAnExcerptTheOthersAreUnobserved) {
  const auto job = read_log(timeout_of(0, 9, "[rank0]:") + timeout_of(4, 9, "[rank4]:"));
  EXPECT_EQ(job.coverage.unobserved_ranks, (model::RankSet{1, 2, 3}));
  EXPECT_EQ(job.collectives.size(), 2U);
}

TEST(Watchdog, OfAPartOfTheWorldOnlyThoseWhoSpokeAreMembers) {
  const auto job =
      read_log(timeout_of(1, 9, "[rank1]:") + status_of(1, 9, "PG ID 2 PG GUID 4(tp)") +
               timeout_of(3, 9, "[rank3]:") + status_of(3, 9, "PG ID 2 PG GUID 4(tp)"));
  ASSERT_NE(model::group(job, "4"), nullptr);
  EXPECT_EQ(model::group(job, "4")->ranks, (std::vector<model::Rank>{1, 3}));
}

TEST(Watchdog, ARankWithinAPartOfTheWorldIsNoRankOfTheWorld) {
  const auto job = read_log(
      "what():  [PG 3 Rank 1] Process group watchdog thread terminated with exception: [Rank 1] "
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, "
      "Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n");
  EXPECT_TRUE(job.collectives.empty());
}

TEST(Watchdog, OneThatStandsStillIsNoEndOfItsRank) {
  const auto job = read_log(
      "[rank2]:[F612 ProcessGroupNCCL.cpp:1169] [PG 0 Rank 2] ProcessGroupNCCL's watchdog got "
      "stuck for 480 seconds without making progress in monitoring enqueued collectives.\n"
      "E0612 1187 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) "
      "local_rank: 2 (pid: 1300) of binary: /usr/bin/python3\n");
  const auto facts = model::facts(job, "watchdog-stuck");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0]->rank, 2);
  EXPECT_EQ(facts[0]->number("seconds"), 480);
  EXPECT_TRUE(job.observations.empty());
}

TEST(Desync, ItsSnapshotSaysWhereEachRankWas) {
  const auto job = read_log(
      timeout_of(0, 241, "[rank0]:") +
      "[rank0]:[E515 ProcessGroupNCCL.cpp:1937] Rank 0\n"
      "\t - [0] Timeout at collective: ALLREDUCE, #315\n"
      "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
      "\t     [3] finished collective #182, but didn't join collective #183 (count from 1)\n"
      "\t - Snapshot of ranks' latest states:\n"
      "\t   #182 finished ranks:\n\t     [3] finished ALLREDUCE\n"
      "\t   #315 started ranks:\n\t     [0, 1] started ALLREDUCE\n"
      "\t     [2] started _ALLGATHER_BASE\n");
  const auto at = [&job](model::Rank rank, std::int64_t sequence) -> std::string {
    for (const auto& call : job.collectives) {
      if (call.rank == rank && call.sequence == sequence) {
        return model::is_over(call.state) ? call.operation + ", over" : call.operation;
      }
    }
    return "none";
  };
  EXPECT_EQ(at(3, 182), "all_reduce, over");
  EXPECT_EQ(at(3, 183), "none");
  EXPECT_EQ(at(0, 183), "");
  EXPECT_EQ(at(1, 315), "all_reduce");
  EXPECT_EQ(at(2, 315), "all_gather_into_tensor");
  EXPECT_EQ(at(0, 241), "none") << "the watchdog counts otherwise";
}

TEST(Watchdog, WhoHadNothingUnderWayIsBehindAndTheStackOfACallIsItsPlace) {
  const auto job = read_log(
      "[rank0]:[E606 09:09:08.1 ProcessGroupNCCL.cpp:757] [Rank 0] Watchdog caught collective "
      "operation timeout: WorkNCCL(SeqNum=167, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
      "Timeout(ms)=600000) ran for 600004 milliseconds before timing out.\n"
      "[rank0]:[E606 09:09:08.1 ProcessGroupNCCL.cpp:2395] [PG ID 0 PG GUID 0(default_pg) Rank 0]  "
      "failure detected by watchdog at work sequence id: 167 PG status: last enqueued work: 167, "
      "last completed work: 166\n[rank0]:[E606 09:09:08.1 ProcessGroupNCCL.cpp:744] Stack trace of "
      "the failed collective: \n#0 all_reduce from "
      "/opt/site-packages/torch/distributed/distributed_c10d.py:2938\n#1 step from "
      "/srv/train.py:88\n#2 main from /srv/train.py:140\n\n"
      "[rank1]:[E606 09:09:08.6 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank 1] "
      "Received a dump signal due to a collective timeout from  rank 0 and we will. Last enqueued "
      "NCCL work: 166, last completed NCCL work: 166.\n"
      "[rank0]:[E606 09:09:09.6 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank 0] "
      "Received a dump signal due to a collective timeout from this local rank. Last enqueued NCCL "
      "work: 167, last completed NCCL work: 166.\n");
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].group, "0");
  EXPECT_EQ(job.collectives[0].call_site.file, "/srv/train.py");
  EXPECT_EQ(job.collectives[0].call_site.line, 88);
  EXPECT_EQ(job.collectives[1].rank, 1);
  EXPECT_EQ(job.collectives[1].sequence, 166);
}

TEST(Watchdog, TheRanksThatItsReportCallsLaggingAreBehind) {
  const auto job = read_log(
      "[rank0]:[E ProcessGroupNCCL.cpp:456] [Rank 0] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=10000) ran for "
      "10060 milliseconds before timing out.\n\t - To our best knowledge, ranks [1, 2] are the "
      "lagging ranks that caused this timeout.\n");
  ASSERT_EQ(job.collectives.size(), 3U);
  EXPECT_EQ(job.collectives[1].sequence, 11);
  EXPECT_EQ(job.collectives[2].rank, 2);
}

TEST(Watchdog, WhoBeganTheCallOfTheOthersIsNotBehindThem) {
  const auto job = read_log(
      "[rank1]:[E ProcessGroupNCCL.cpp:632] [PG ID 0 PG GUID 0(default_pg) Rank 1] Watchdog caught "
      "collective operation timeout: WorkNCCL(SeqNum=19962, OpType=ALLREDUCE, NumelIn=4, "
      "NumelOut=4, "
      "Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
      "[rank3]:[E ProcessGroupNCCL.cpp:1537] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a "
      "dump "
      "signal due to a collective timeout from  rank 1 and we will try our best to dump the debug "
      "info. Last enqueued NCCL work: 19964, last completed NCCL work: 19961.This is most "
      "likely\n");
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[1].rank, 3);
  EXPECT_EQ(job.collectives[1].sequence, 19'962);
  EXPECT_EQ(job.collectives[1].state, model::CallState::kEnqueued);
}

TEST(Watchdog, OneThatIsStuckSaysNothingOfTheCallOfItsRank) {
  const auto job = read_log(
      "[rank2]:[E626 05:06:30.9 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective "
      "operation timeout: WorkNCCL(SeqNum=120049, OpType=_ALLGATHER_BASE, NumelIn=1, NumelOut=8, "
      "Timeout(ms)=1800000) ran for 1800065 milliseconds before timing out.\n"
      "[rank5]:[E626 05:14:36.3 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank 5] "
      "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in "
      "monitoring enqueued collectives.\n");
  EXPECT_TRUE(job.coverage.unobserved_ranks.contains(5));
  EXPECT_EQ(model::rank_process(job, 5), nullptr);
}

TEST(Watchdog, EachRankHasTheLinesOfItsOwnStack) {
  const auto timed_out = [](int rank, const char* group, int sequence) {
    const std::string name = std::to_string(rank);
    const std::string number = std::to_string(sequence);
    return "[rank" + name + "]:[E ProcessGroupNCCL.cpp:689] [Rank " + name +
           "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + number +
           ", OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=60000) ran for 60008 "
           "milliseconds before timing out.\n[rank" +
           name + "]:[E ProcessGroupNCCL.cpp:2303] [PG ID 0 PG GUID " + group + " Rank " + name +
           "]  failure detected by watchdog at work sequence id: " + number +
           " PG status: last enqueued work: " + number + ", last completed work: 6\n[rank" + name +
           "]:[E ProcessGroupNCCL.cpp:733] Stack trace of the failed collective: \n";
  };
  const auto job = read_log(timed_out(0, "0(default_pg)", 7) + timed_out(1, "0(default_pg)", 7) +
                            "#0 all_reduce from /opt/site-packages/torch/distributed_c10d.py:9\n"
                            "#1 step from /srv/train.py:20\n#2 main from /srv/train.py:30\n"
                            "#4 stray from /srv/other.py:1\n#3 late from /srv/other.py:2\n");
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_FALSE(job.collectives[0].call_site.known());
  EXPECT_EQ(job.collectives[1].call_site.line, 20);
  ASSERT_EQ(job.collectives[1].callers.size(), 2U);
  EXPECT_EQ(job.collectives[1].callers[1].line, 30);
}

TEST(Watchdog, ItsAbortAfterAnErrorIsNoDeathOfItsRank) {
  const auto job = read_log(
      "[rank3]:[E ProcessGroupNCCL.cpp:916] [Rank 3] NCCL watchdog thread terminated with "
      "exception: "
      "NCCL error: remote process exited or there was a network error, NCCL version 2.19.3\n"
      "E0101 failed (exitcode: -6) local_rank: 3 (pid: 4242) of binary: /usr/bin/python\n");
  EXPECT_EQ(model::facts(job, "watchdog-error").size(), 1U);
  EXPECT_TRUE(job.observations.empty());
}

TEST(Watchdog, ACrashReportAfterItsErrorShowsWhereItsRankWaited) {
  const auto job = read_log(
      "[rank1]:[E ProcessGroupNCCL.cpp:2131] [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group "
      "watchdog thread terminated with exception: NCCL error: remote process exited or there was a "
      "network error, NCCL version 2.27.7\n"
      "Fatal Python error: Aborted\n\n"
      "Thread 0x00007f25b16d5080 (most recent call first):\n"
      "  File \"/srv/train.py\", line 48 in main\n\n"
      "E0101 failed (exitcode: -6) local_rank: 1 (pid: 4242) of binary: /usr/bin/python\n");
  const model::Process* process = model::rank_process(job, 1);
  ASSERT_NE(process, nullptr);
  EXPECT_FALSE(process->exit);
  EXPECT_EQ(process->threads.front().frames.front().line, 48);
}

}  // namespace
}  // namespace ddpdoctor::imports
