// SPDX-License-Identifier: Apache-2.0
// One pid in several dumps: snapshots of one process, or ranks in containers that all have this
// pid.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/imports/logs/text_file.h"
#include "collector/imports/merge.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;  // path, text

model::JobModel read(const Files& files) {
  model::JobModel job;
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto part = read_text(files[i].second, files[i].first);
    EXPECT_TRUE(part);
    if (i == 0) {
      job = std::move(*part);
    } else {
      merge(job, std::move(*part));
    }
  }
  settle_dumps(job);
  return job;
}

std::string at(int line, int pid = 7) {
  return fmt::format(
      "Process {0}: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
      "Thread {0} (idle): \"MainThread\"\n"
      "    all_reduce (torch/distributed/distributed_c10d.py:3252)\n"
      "    main (train.py:{1})\n    <module> (train.py:99)\n",
      pid, line);
}

std::string told(const model::JobModel& job) {
  std::string out;
  for (const model::Process& process : model::latest(job)->processes) {
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", process.rank.value_or(-1), process.pid);
  }
  return fmt::format("{} looks: {}", job.observations.size(), out);
}

TEST(OnePid, InFilesOfSeveralRanksIsSeveralProcesses) {
  const auto job =
      read({{"rank_0.txt", at(29)}, {"rank_1.txt", at(26)}, {"pod-rank-2/dump.txt", at(26)}});
  EXPECT_EQ(told(job), "1 looks: 0=7 1=7 2=7");
  EXPECT_NE(job.progress, model::Progress::kMoving);
}

// rank1.txt has two snapshots, those of rank 0 are in a file each.
TEST(OnePid, InTwoFilesBesideAFileOfTwoSnapshotsIsTwoSnapshots) {
  const auto titled = [](int line) {
    return at(line).replace(0, 26, "Process 7: VLLM::Worker_TP0");
  };
  const auto job = read({{"first.txt", titled(12)},
                         {"second.txt", titled(13)},
                         {"other.txt", at(29, 8) + "\n" + at(29, 8)}});
  ASSERT_EQ(job.observations.size(), 2U);
  for (const model::Observation& look : job.observations) {
    EXPECT_EQ(look.processes.size(), 2U);
  }
}

TEST(OnePid, UnderSeveralHeadingsIsSeveralProcesses) {
  const auto job = read({{"all.txt", "=== rank 0 ===\n" + at(29) + "=== rank 1 ===\n" + at(26)}});
  EXPECT_EQ(told(job), "1 looks: 0=7 1=7");
}

TEST(OnePid, OfOneRankIsASecondLook) {
  const auto job = read({{"rank_0.txt", at(29)}, {"rank_1.txt", at(26)}, {"rank_1.txt", at(26)}});
  EXPECT_EQ(told(job), "2 looks: 0=7 1=7");
  // Only the first snapshot says which rank it is.
  const auto again = read({{"all.txt", "=== rank 3 ===\n" + at(29) + "\nlater\n\n\n\n" + at(29)}});
  EXPECT_EQ(told(again), "2 looks: 3=7");
  EXPECT_NE(again.progress, model::Progress::kMoving);
}

TEST(OnePid, NumbersOfFilesCountLooksAtIt) {
  const auto job = read({{"dump_1.txt", at(29)}, {"dump_2.txt", at(29)}});
  EXPECT_EQ(told(job), "2 looks: 0=7");
  EXPECT_NE(job.progress, model::Progress::kMoving);
  EXPECT_FALSE(job.coverage.warnings.empty());
  // Or they are ranks in containers: the job must not be reported as making progress.
  EXPECT_NE(read({{"dump_1.txt", at(29)}, {"dump_2.txt", at(26)}}).progress,
            model::Progress::kMoving);
  EXPECT_EQ(told(read({{"node0/dump_0.txt", at(29)},
                       {"node0/dump_1.txt", at(29)},
                       {"node1/dump_0.txt", at(26)}})),
            "2 looks: 0=7 1=7");
  EXPECT_TRUE(job.facts.empty());
}

TEST(OnePid, NumbersOfFilesAreRanksOfSeveralPids) {
  const auto job = read({{"dump_1.txt", at(29, 7)}, {"dump_0.txt", at(26, 8)}});
  EXPECT_EQ(told(job), "1 looks: 1=7 0=8");
  EXPECT_TRUE(job.facts.empty());
}

std::string bare(int line) {
  return fmt::format(
      "#0  0x00007f26 in pthread_cond_wait () from /usr/lib/libc.so.6\n"
      "#1  0x00007f27 in _PyEval_EvalFrameDefault (f=Frame 0x55, for file /srv/train.py, line {}, "
      "in main ()) at ../Python/ceval.c:1\n",
      line);
}

TEST(NoPid, EachFileIsAProcess) {
  const auto job = read({{"first.txt", bare(29)}, {"second.txt", bare(29)}, {"last", bare(26)}});
  EXPECT_EQ(told(job), "1 looks: 0=0 1=0 2=0");
  EXPECT_NE(job.progress, model::Progress::kMoving);
}

TEST(NoPid, NumbersOfFilesAreRanks) {
  const auto job =
      read({{"gdb-0.txt", bare(29)}, {"gdb-1.txt", bare(26)}, {"gdb-2.txt", bare(29)}});
  EXPECT_EQ(told(job), "1 looks: 0=0 1=0 2=0");
}

TEST(NoPid, OneThreadInSeveralFilesIsOneProcess) {
  const std::string address =
      "Thread 0x00007f26f7133740 (most recent call first):\n"
      "  File \"/srv/train.py\", line 29 in main\n  File \"/srv/train.py\", line 40 in <module>\n";
  EXPECT_EQ(told(read({{"first.txt", address}, {"second.txt", address}})), "2 looks: 0=0");
}

TEST(NoPid, PySpyNamesThreadsByAddress) {
  const std::string main =
      "Thread 0x7F26F7133740 (idle): \"MainThread\"\n"
      "    all_reduce (torch/distributed/distributed_c10d.py:3252)\n    main (train.py:29)\n";
  const std::string other =
      "Thread 0x7F26F7133740 (active): \"MainThread\"\n    main (train.py:26)\n";
  EXPECT_EQ(told(read({{"a.txt", main}, {"b.txt", other}})), "2 looks: 0=0");
  EXPECT_EQ(told(read({{"rank0.txt", main}, {"rank1.txt", other}})), "1 looks: 0=0 1=0");
}

TEST(MpiPool, TheClientIsNotARank) {
  const auto of = [](int pid, const std::string& command) {
    return fmt::format(
        "Process {0}: {1}\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
        "Thread {0} (idle): \"MainThread\"\n    run (app.py:3)\n\n",
        pid, command);
  };
  const std::string server = "python -m mpi4py.futures.server";
  EXPECT_EQ(told(read({{"dump.txt", of(7, "serve") + of(8, server) + of(9, server)}})),
            "1 looks: -1=7 0=8 1=9");
  EXPECT_EQ(told(read({{"dump.txt", of(7, "serve") + of(8, "serve")}})), "1 looks: 0=7 1=8");
}

TEST(OneFile, TheNumberInItsNameIsNoRank) {
  EXPECT_EQ(told(read({{"03.txt", at(29)}})), "1 looks: 0=7");  // numbered, as the only rank
  EXPECT_EQ(told(read({{"py-spy-3.txt", at(29)}, {"py-spy-1.txt", at(26, 8)}})),
            "1 looks: 3=7 1=8");
}

TEST(RankOfPid, ALineThatHasBothNamesTheDump) {
  const std::string two = "\nall\nare\nbelow:\n\n" + at(29, 7001) + at(26, 7002);
  EXPECT_EQ(told(read({{"all.txt",
                        "$ py-spy dump -p 7001  # MPI rank 1\n$ py-spy dump -p 7002  # rank 0\n" +
                            two}})),
            "1 looks: 1=7001 0=7002");
}

TEST(RankOfPid, LinesThatGiveOneRankToTwoProcessesCountSomethingElse) {
  const std::string two = "\nall\nare\nbelow:\n\n" + at(29, 7001) + at(26, 7002);
  EXPECT_EQ(told(read({{"all.txt", "rank 0 has child 7001\nrank 0 has child 7002\n" + two}})),
            "1 looks: 0=7001 1=7002");
}

TEST(RankOfPid, ANativeStackOfARankWithoutAPidIsOfThatRanksProcess) {
  const auto job =
      read({{"all.txt",
             "rank 0:\n" + at(29, 7001) + "\nrank 1:\n" + at(26, 7002) +
                 "\ngdb, main thread of rank 1:\n"
                 "#0  0x00007f1c4dd159e5 in clock_nanosleep@GLIBC_2.2.5 () from /lib64/libc.so.6\n"
                 "#1  0x00007f1bfa188155 in groupLaunch(ncclAsyncJob*) () from "
                 "/lib/libtorch_cuda.so\n"}});
  EXPECT_EQ(told(job), "1 looks: 0=7001 1=7002");
  const auto& threads = model::latest(job)->processes.back().threads;
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads[0].frames.front().language, model::Language::kNative);
  EXPECT_EQ(threads[0].frames.back().language, model::Language::kPython);
}

TEST(DumpIdentity, ALogTellsTheRanksOfDumpsInOtherFiles) {
  const std::string log =
      "(RayTrainWorker pid=5172, ip=10.1.0.2) Setting up process group for: env:// [rank=1, "
      "world_size=2]\n"
      "(RayTrainWorker pid=5137, ip=10.1.0.2) Setting up process group for: env:// [rank=0, "
      "world_size=2]\n(RayTrainWorker pid=5137, ip=10.1.0.2) loss 0.5\n";
  const model::JobModel job =
      read({{"job.log", log}, {"a.txt", at(3, 5137)}, {"b.txt", at(4, 5172)}});
  const auto rank_of = [&job](pid_t pid) {
    const model::Process* process = model::process(job, pid);
    return process == nullptr ? std::nullopt : process->rank;
  };
  EXPECT_EQ(rank_of(5137), 0);
  EXPECT_EQ(rank_of(5172), 1);
}

TEST(DumpIdentity, NativeFramesInAFileNamedForARankAreOfThatRank) {
  const std::string native =
      "(gdb) info threads\n"
      "  Id   Target Id                            Frame\n"
      "* 1    Thread 0x7f01 (LWP 71) \"python\"      0x00007f01 in sched_yield () from "
      "/lib/libc.so.6\n"
      "  2    Thread 0x7f02 (LWP 75) \"python\"      0x00007f04 in poll () from /lib/libc.so.6\n"
      "(gdb) thread 1\n[Switching to thread 1 (Thread 0x7f01 (LWP 71))]\n"
      "#0  0x00007f01 in sched_yield () from /lib/libc.so.6\n(gdb) bt\n"
      "#0  0x00007f01 in sched_yield () from /lib/libc.so.6\n"
      "#1  0x00007f02 in horovod::torch::WaitAndClear (handle=37) at mpi_ops.cc:992\n"
      "#2  0x0000004f in _PyEval_EvalFrameDefault ()\n";
  const model::JobModel job = read({{"gdb_rank1.txt", native}});
  const model::Process& process = job.observations.back().processes.front();
  EXPECT_EQ(process.role, model::Role::kRank);
  EXPECT_EQ(process.rank, 1);
  ASSERT_EQ(process.threads.size(), 2U);
  EXPECT_TRUE(process.threads[1].frames.empty());
  EXPECT_EQ(process.threads[1].state, 'S');  // the table says that it sleeps
}

}  // namespace
}  // namespace ddpdoctor::imports
