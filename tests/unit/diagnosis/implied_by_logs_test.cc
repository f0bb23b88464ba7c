// SPDX-License-Identifier: Apache-2.0
// What logs and dumps imply: the sizes of groups, calls that cannot belong together, ranks that a
// known absence explains, waits that end by themselves.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/diagnosis/diagnosis.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/stack_dumps/dump_processes.h"

namespace ddpdoctor::diagnosis {
namespace {

using detectors::Confidence;
using detectors::Finding;

/// The first finding of a log; one without a kind if there is none.
Finding first_of(const std::string& log) {
  auto job = imports::read_text(log, "job.log");
  if (job) {
    imports::settle_dumps(*job);
  }
  auto findings = job ? diagnose(*job).findings : std::vector<Finding>{};
  return findings.empty() ? Finding{} : findings.front();
}

/// The two lines of a watchdog: the timeout, and how far the rank is in the world.
std::string timed_out(int rank, int number, const std::string& call, int enqueued) {
  return fmt::format(
      "[rank{0}]:[E1 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
      "timeout: WorkNCCL(SeqNum={1}, OpType={2}, Timeout(ms)=600000) ran for 600080 milliseconds "
      "before timing out.\n"
      "[rank{0}]:[E1 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Exception "
      "(either an error or timeout) detected by watchdog at work: {1}, last enqueued NCCL work: "
      "{3}, last completed NCCL work: {4}.\n",
      rank, number, call, enqueued, number - 1);
}

constexpr const char* kReduce = "ALLREDUCE, NumelIn=1938, NumelOut=1938";

TEST(ImpliedByLogs, ARankThatFinishedTooManyCallsMadeOthers) {
  const Finding finding =
      first_of(timed_out(0, 122, "_REDUCE_SCATTER_BASE, NumelIn=1000, NumelOut=500", 127) +
               timed_out(1, 126, "_ALLGATHER_BASE, NumelIn=300, NumelOut=600", 128));
  EXPECT_EQ(finding.kind, "mismatched-op");
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_TRUE(finding.culprits.empty());
  EXPECT_EQ(finding.summary,
            "rank 0 is still in reduce_scatter_tensor #122 of default_pg, but rank 1 has finished "
            "#125, which needs all ranks: they made different calls before");
}

TEST(ImpliedByLogs, OneCallApartMayBeTheSameCalls) {
  // The last message of a call may be lost for one of its ranks.
  const Finding finding =
      first_of(timed_out(0, 122, kReduce, 123) + timed_out(1, 123, kReduce, 123));
  EXPECT_NE(finding.kind, "mismatched-op");
}

TEST(ImpliedByLogs, AGatherShowsHowManyRanksItsGroupHas) {
  const std::string log = timed_out(1, 9, "_ALLGATHER_BASE, NumelIn=192, NumelOut=576", 9) +
                          timed_out(2, 9, "_ALLGATHER_BASE, NumelIn=192, NumelOut=576", 9);
  const Finding finding = first_of(log);
  EXPECT_NE(finding.kind, "gpu-stalled");
  // Two members of a group of two: none is missing.
  EXPECT_EQ(first_of(timed_out(0, 9, "_ALLGATHER_BASE, NumelIn=192, NumelOut=384", 9) +
                     timed_out(1, 9, "_ALLGATHER_BASE, NumelIn=192, NumelOut=384", 9))
                .kind,
            "gpu-stalled");
}

TEST(ImpliedByLogs, GpusAreNotBlamedWhileRanksAreUnknown) {
  std::string log;
  for (const int rank : {3, 4, 5, 7}) {
    log += timed_out(rank, 28956, kReduce, 28956);
  }
  EXPECT_EQ(first_of(log).kind, "undetermined");
}

TEST(ImpliedByLogs, SilentRanksAreNotMissingBesideOneThatRaised) {
  std::string log =
      "[rank2]: Traceback (most recent call last):\n"
      "[rank2]:   File \"/srv/train.py\", line 3, in main\n"
      "[rank2]:     step()\n"
      "[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB.\n";
  for (const int rank : {1, 3, 5, 6, 7}) {
    log += timed_out(rank, 15734, kReduce, 15734);
  }
  const Finding finding = first_of(log);
  EXPECT_EQ(finding.kind, "rank-raised");
  EXPECT_EQ(finding.culprits, model::RankSet({2}));
  // Without that exception, the few silent ones are missing.
  std::string alone;
  for (const int rank : {0, 1, 3, 4, 5, 6, 7}) {
    alone += timed_out(rank, 15734, kReduce, 15734);
  }
  EXPECT_EQ(first_of(alone).kind, "missing-rank");
  EXPECT_EQ(first_of(alone).culprits, model::RankSet({2}));
}

std::string reached(int rank) {
  return fmt::format(
      "[E ProcessGroupGloo.cpp:138] Rank {} successfully reached monitoredBarrier, but received "
      "errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n",
      rank);
}

TEST(ImpliedByLogs, TheRankThatSendsNoAnswerIsMissing) {
  const Finding finding = first_of(reached(3) + reached(1) + reached(2));
  EXPECT_EQ(finding.kind, "missing-rank");
  EXPECT_EQ(finding.culprits, model::RankSet({0}));
  // One rank alone: the log of rank 0 may name another.
  EXPECT_NE(first_of(reached(3)).kind, "missing-rank");
  EXPECT_NE(first_of(reached(3) + "RuntimeError: Connection closed by peer\n" + reached(2)).kind,
            "missing-rank");
}

std::string in_store(int rank, int world, int joined) {
  return fmt::format(
      "RuntimeError: Timed out initializing process group in store based barrier on rank: {}, for "
      "key: store_based_barrier_key:1 (world_size={}, worker_count={}, timeout=0:30:00)\n",
      rank, world, joined);
}

TEST(ImpliedByLogs, MoreRanksThanTheWorldHasShareTheirNumbers) {
  const Finding finding = first_of(in_store(0, 4, 8) + in_store(2, 4, 8));
  EXPECT_EQ(finding.kind, "duplicate-rank");
  EXPECT_TRUE(finding.culprits.empty());
  EXPECT_EQ(finding.waiting, model::RankSet({0, 2}));
}

TEST(ImpliedByLogs, ARankOutsideItsWorldWasStartedWithOtherSettings) {
  const Finding finding = first_of(
      "-- Process 1 terminated with the following error:\n"
      "Traceback (most recent call last):\n"
      "  File \"/srv/main.py\", line 137, in main_worker\n"
      "    dist.init_process_group(backend='nccl', world_size=2, rank=rank)\n"
      "  File \"/opt/site-packages/torch/distributed/distributed_c10d.py\", line 219, in f\n"
      "    raise RuntimeError(\n" +
      in_store(2, 2, 4));
  EXPECT_EQ(finding.kind, "environment-differs");
  ASSERT_FALSE(finding.locations.empty());
  EXPECT_EQ(finding.locations[0].line, 137);
}

std::string at_its_end(int rank) {
  return fmt::format(
      "[rank{}]:[W1 ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not "
      "called before program exit, which can leak resources.\n",
      rank);
}

TEST(ImpliedByLogs, AWatchdogThatStopsAfterTheEndShowsAnExitThatHangs) {
  const std::string stuck =
      "[rank1]:[E1 ProcessGroupNCCL.cpp:1870] [PG ID 0 PG GUID 0(default_pg) Rank 1] "
      "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress.\n";
  const Finding finding = first_of(at_its_end(0) + at_its_end(1) + stuck);
  EXPECT_EQ(finding.kind, "exit-hang");
  EXPECT_EQ(finding.culprits, model::RankSet({1}));
  EXPECT_NE(first_of(stuck).kind, "exit-hang");
}

TEST(ImpliedByLogs, WorkersWithoutRequestsOnlyWait) {
  const auto engine = [](int running) {
    return fmt::format(
        "INFO 09-25 19:54:41 [loggers.py:127] Engine 000: Avg generation throughput: 0.0 tokens/s, "
        "Running: {} reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%\n",
        running);
  };
  const std::string block =
      "INFO 09-25 19:55:44 [shm_broadcast.py:458] No available shared memory broadcast block found "
      "in 60 seconds. This typically happens when some processes are hanging.\n";
  EXPECT_NE(first_of(engine(1) + block).summary.find("waited for messages"), std::string::npos);
  EXPECT_EQ(first_of(engine(0) + block).summary.find("waited for messages"), std::string::npos);
}

TEST(ImpliedByLogs, AMismatchInsideAFrameworkIsAtTheLineThatCallsItsWrapper) {
  const Finding finding = first_of(
      "[rank0]:   File \"/opt/site-packages/deepspeed/runtime/zero/stage_1_and_2.py\", line 1502, "
      "in "
      "allreduce_bucket\n"
      "[rank0]:     dist.all_reduce(tensor)\n"
      "[rank0]:   File \"/opt/site-packages/deepspeed/comm/comm.py\", line 117, in log_wrapper\n"
      "[rank0]:     return func(*args)\n"
      "[rank0]:   File \"/opt/site-packages/deepspeed/comm/torch.py\", line 168, in all_reduce\n"
      "[rank0]:     return torch.distributed.all_reduce(tensor)\n"
      "[rank0]:   File \"/opt/site-packages/torch/distributed/distributed_c10d.py\", line 2050, in "
      "all_reduce\n"
      "[rank0]:     work = group.allreduce([tensor], opts)\n"
      "[rank0]: RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running "
      "collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[4], "
      "TensorDtypes=Float, TensorDeviceTypes=x), but Rank 1 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[5], "
      "TensorDtypes=Float, TensorDeviceTypes=x).\n");
  EXPECT_EQ(finding.kind, "mismatched-shape");
  ASSERT_FALSE(finding.locations.empty());
  EXPECT_EQ(finding.locations[0].line, 1502);
}

TEST(ImpliedByLogs, ATracebackWithoutItsHeadingShowsWhoWaited) {
  const Finding finding = first_of(
      "  File \"/srv/levanter/jax_utils.py\", line 75, in sync\n"
      "    client.wait_at_barrier(\"sync0\")\n"
      "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: "
      "sync0. Timed out task names:\n"
      "/job:jax_worker/replica:0/task:3\n"
      "/job:jax_worker/replica:0/task:0\n");
  EXPECT_EQ(finding.kind, "missing-rank");
  EXPECT_EQ(finding.culprits, model::RankSet({0, 3}));
  ASSERT_FALSE(finding.locations.empty());
  EXPECT_EQ(finding.locations[0].line, 75);
}

TEST(ImpliedByLogs, TheSchedulersLimitIsNoCauseOfAHangBeforeIt) {
  const std::string limit =
      "slurmstepd: error: *** STEP 118204.4 ON node9 CANCELLED AT 2026-06-23T22:43:31 DUE TO TIME "
      "LIMIT ***\n";
  const std::string waited =
      "Traceback (most recent call last):\n"
      "  File \"/srv/serve.py\", line 93, in gather\n    work.wait()\n"
      "RuntimeError: [/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 7200000ms for "
      "recv "
      "operation to complete\n";
  EXPECT_EQ(first_of("step 7\n" + limit).kind, "dead-rank");
  EXPECT_NE(first_of(waited + limit).kind, "dead-rank");
}

TEST(ImpliedByLogs, AnOldSpawnNamesTheProcessThatASignalEnded) {
  const Finding finding = first_of(
      "Traceback (most recent call last):\n"
      "  File \"/opt/torch/multiprocessing/spawn.py\", line 108, in join\n"
      "    (error_index, name)\n"
      "Exception: process 0 terminated with signal SIGKILL\n");
  EXPECT_EQ(finding.kind, "dead-rank");
  EXPECT_EQ(finding.culprits, model::RankSet({0}));
}

TEST(ImpliedByLogs, ADestructorEntersItsCallerAgain) {
  const auto stack = [](const std::string& outer) {
    return "(gdb) bt\n"
           "#0  __lll_lock_wait () at lowlevellock.S:135\n"
           "#1  0x00007f01 in __GI___pthread_mutex_lock (mutex=0x7feb) at pthread_mutex_lock.c:78\n"
           "#2  0x00007f02 in ipc::Limbo::collect() () from /opt/libipc.so\n"
           "#3  0x00007f03 in ipc::SentDataDelete(void*) () from /opt/libipc.so\n"
           "#4  0x00007f04 in ipc::SentData::~SentData() () from /opt/libipc.so\n"
           "#5  0x00007f05 in " +
           outer +
           " () from /opt/libipc.so\n"
           "#6  0x00007f06 in main () from /opt/program\n";
  };
  EXPECT_EQ(first_of(stack("ipc::Limbo::collect()")).kind, "lock-deadlock");
  EXPECT_NE(first_of(stack("ipc::Pool::trim()")).kind, "lock-deadlock");
}

TEST(ImpliedByLogs, ATracebackBelowALabelledLineIsOfThatRank) {
  const Finding finding = first_of(
      "[2026-01-16 22:03:02 TP2] Scheduler hit an exception: Traceback (most recent call last):\n"
      "  File \"/srv/scheduler.py\", line 2682, in run\n    self.loop()\n"
      "  File \"/srv/conn.py\", line 936, in check_status\n    return self.status[room]\n"
      "KeyError: 7329215490623881346\n\n"
      "[2026-01-16 22:03:02] Received sigquit from a child process.\n");
  EXPECT_EQ(finding.kind, "rank-raised");
  EXPECT_EQ(finding.culprits, model::RankSet({2}));
}

TEST(ImpliedByLogs, ABarThatCountedThroughTheWaitIsWork) {
  const auto bar = [](const std::string& elapsed) {
    return "Running tokenizer on dataset:   9%|███   | 280000/2969526 [" + elapsed +
           "<4:48:08, 155.57 examples/s]";
  };
  std::string waits;
  for (const int rank : {1, 2, 3}) {
    waits += timed_out(rank, 2, "ALLREDUCE, NumelIn=1, NumelOut=1", 2);
  }
  const Finding finding = first_of(bar("09:55") + waits);
  EXPECT_EQ(finding.kind, "long-phase");
  EXPECT_EQ(finding.culprits, model::RankSet({0}));
  EXPECT_EQ(first_of(bar("00:55") + waits).kind, "missing-rank");  // begun a moment ago
}

TEST(ImpliedByLogs, AKernelThatGaveUpEndedTheProcess) {
  const std::string abort =
      "Fatal Python error: Aborted\n\n"
      "Thread 0x0000fffff7ff46a0 (most recent call first):\n"
      "  File \"/srv/serve.py\", line 91 in gather\n"
      "  File \"/srv/serve.py\", line 300 in <module>\n";
  EXPECT_EQ(first_of(abort).kind, "dead-rank");
  EXPECT_EQ(
      first_of("DeepGEMM grid sync timeout: sm=124, thread=0, grid_sync_idx=0\n" + abort).kind,
      "device-kernel-stalled");
}

/// py-spy's dump of a rank whose forward gathers the parameters of a submodule.
std::string gathers(int pid) {
  return fmt::format(
      "Process {0}: python train.py\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
      "Thread {0} (active): \"MainThread\"\n"
      "    all_gather_into_tensor (torch/distributed/distributed_c10d.py:2948)\n"
      "    forward (models/moe.py:739)\n"
      "    _call_impl (torch/nn/modules/module.py:1603)\n"
      "    main (train.py:40)\n    <module> (train.py:60)\n",
      pid);
}

TEST(ImpliedByLogs, ARankInAModuleMayWaitForItsGpu) {
  const auto other = [](const std::string& inside) {
    return "Process 15: python train.py\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
           "Thread 15 (active): \"MainThread\"\n" +
           inside + "    main (train.py:40)\n    <module> (train.py:60)\n";
  };
  const std::string waiting = gathers(12) + gathers(13) + gathers(14);
  EXPECT_EQ(first_of(waiting + other("    forward (models/moe.py:733)\n"
                                     "    _call_impl (torch/nn/modules/module.py:1603)\n"))
                .kind,
            "undetermined");
  EXPECT_EQ(first_of(waiting + other("    tokenize (data.py:7)\n")).kind, "long-phase");
}

}  // namespace
}  // namespace ddpdoctor::diagnosis
