// SPDX-License-Identifier: Apache-2.0
// One small dump of each tool, and the forms in which people pass dumps on: several in one file,
// pasted, mixed with output, taken twice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/imports/logs/text_file.h"
#include "collector/imports/merge.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kPySpy = R"(Process 71: python -u train.py
Python v3.11.7 (/usr/bin/python3.11)
Parent Process 70: torchrun train.py

Thread 71 (idle): "MainThread"
    pthread_cond_wait (libc.so.6)
    c10d::(anonymous namespace)::work (x.cpp:12)
    all_reduce (torch/distributed/distributed_c10d.py:3252)
        Arguments:
            tensor: <Tensor at 0x7f26>
            group: None
    main (train.py:29)
        Locals:
            rank: 3
            password: "hunter2"
    <module> (train.py:37)
Thread 75 (active+gil): "loader"
    spin (data.py:6)
)";

TEST(PySpy, ReadsFramesInnermostFirst) {
  const auto job = read_dump(kPySpy);
  const auto& process = only(job);
  EXPECT_EQ(process.pid, 71);
  EXPECT_EQ(process.ppid, 70);
  EXPECT_EQ(process.rank, 3);
  EXPECT_EQ(process.python_version, "3.11.7");
  ASSERT_EQ(process.threads.size(), 2U);
  const auto& frames = process.threads[0].frames;
  ASSERT_EQ(frames.size(), 5U);
  EXPECT_EQ(frames[0].module, "libc.so.6");
  EXPECT_EQ(frames[1].language, model::Language::kNative);
  EXPECT_EQ(frames[1].line, 12);
  EXPECT_EQ(frames[2].file, "torch/distributed/distributed_c10d.py");
  EXPECT_EQ(frames[3].function, "main");
  EXPECT_EQ(frames[3].line, 29);
}

TEST(PySpy, TellsTheHolderOfTheGil) {
  const auto job = read_dump(kPySpy);
  const auto& threads = only(job).threads;
  EXPECT_EQ(threads[0].state, 'S');
  EXPECT_FALSE(threads[0].gil);
  EXPECT_EQ(threads[1].state, 'R');
  EXPECT_EQ(threads[1].gil, true);
  EXPECT_EQ(threads[1].name, "loader");
}

TEST(PySpy, KeepsLocalsOfTorchOnly) {
  const auto job = read_dump(kPySpy);
  const auto& frames = only(job).threads[0].frames;
  EXPECT_EQ(frames[2].locals.size(), 2U);
  EXPECT_TRUE(frames[3].locals.empty());
}

TEST(PySpy, ReadsJsonOfSeveralProcesses) {
  constexpr std::string_view kOne = R"([{"pid":7,"thread_name":"MainThread","os_thread_id":7,
    "active":false,"owns_gil":true,"frames":[{"name":"recv","filename":"/app/train.py","module":null,
    "line":4},{"name":"0x7f12","module":"/usr/lib/libc.so.6","line":0}],"process_info":null}])";
  const auto job =
      read_py_spy_dump(std::string(kOne) + "\n[{\"pid\":8,\"frames\":[]}]\n", "x.json");
  ASSERT_TRUE(job);
  ASSERT_EQ(job->observations.front().processes.size(), 2U);
  const auto& thread = job->observations.front().processes[0].threads[0];
  EXPECT_EQ(thread.frames[0].file, "/app/train.py");
  EXPECT_EQ(thread.frames[1].module, "libc.so.6");
  EXPECT_EQ(thread.frames[1].address, 0x7f12U);
  EXPECT_EQ(thread.gil, true);
  EXPECT_FALSE(read_py_spy_dump("[{\"pid\":{}}]", "x.json"));
  EXPECT_FALSE(read_py_spy_dump("[1,", "x.json"));
}

constexpr std::string_view kPystack =
    R"(Traceback for thread 18 (python) [Has the GIL] (most recent call last):
    (Python) File "/usr/lib/python3.11/threading.py", line 1002, in _bootstrap
        self._bootstrap_inner()
    (Python) File "/app/data.py", line 6, in spin
        while True: x += 1

Traceback for thread 17 (python) [] (most recent call last):
    (C) File "???", line 0, in _start (/usr/bin/python3.11)
    (Python) File "/app/train.py", line 15, in <module>
        dist.barrier()
      Locals:
        rank: 2
    (C) File "x.c", line 9, in f(int) (inlined) (/usr/lib/libx.so)
)";

TEST(Pystack, TurnsStacksAround) {
  const auto job = read_dump(kPystack);
  const auto& process = only(job);
  EXPECT_EQ(process.pid, 17);
  EXPECT_EQ(process.rank, 2);
  ASSERT_EQ(process.threads.size(), 2U);
  EXPECT_EQ(process.threads[0].tid, 17);
  const auto& frames = process.threads[0].frames;
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].function, "f(int)");
  EXPECT_EQ(frames[0].module, "libx.so");
  EXPECT_EQ(frames[1].line, 15);
  EXPECT_EQ(process.threads[1].gil, true);
  EXPECT_EQ(job.sources.at("/app/train.py").at(15), "dist.barrier()");
}

TEST(Pystack, AMainThreadBeginsAnotherProcess) {
  const auto job = read_dump(
      std::string(kPystack) +
      std::string(kPystack.substr(kPystack.find("Traceback for thread 17"))).replace(21, 2, "19"));
  ASSERT_EQ(job.observations.size(), 1U);
  ASSERT_EQ(job.observations.back().processes.size(), 2U);
  EXPECT_EQ(job.observations.back().processes[1].pid, 19);
}

TEST(Pystack, LocalsOfTheNextProcessNameNoRankOfThisOne) {
  const auto dump_of = [](std::string_view tid, std::string_view rank) {
    return fmt::format(
        "Traceback for thread {} (python) [] (most recent call last):\n"
        "    (Python) File \"/srv/train.py\", line 9, in main\n        wait()\n"
        "      Locals:\n        rank: {}\n\n",
        tid, rank);
  };
  const auto job = read_dump(dump_of("81", "0") + dump_of("82", "1"));
  const auto& processes = job.observations.back().processes;
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].rank, 0);
  EXPECT_EQ(processes[1].rank, 1);
}

TEST(Pystack, ACoreSaysHowTheProcessDied) {
  const auto job = read_dump(
      "Core file information:\nstate: t zombie: True niceness: 0\n"
      "pid: 570 ppid: 1 sid: 1\nexecutable: python arguments: python train.py\n"
      "The process died due receiving signal SIGSEGV\n" +
      std::string(kPystack));
  EXPECT_EQ(only(job).pid, 570);
  ASSERT_TRUE(only(job).exit);
  EXPECT_EQ(only(job).exit->signal, 11);
}

constexpr std::string_view kGdb = R"([New LWP 32]
Thread 2 (Thread 0x7f01 (LWP 32) "gloo_tcp_loop"):
#0  0x00007f in epoll_wait (epfd=7, timeout=10) at ../sysdeps/epoll_wait.c:30
#1  0x00007f in gloo::(anonymous namespace)::run(int) () from /usr/lib/libtorch_cpu.so
Thread 1 (Thread 0x7f02 (LWP 31) "python"):
#0  clock_nanosleep (clock_id=0) at ../x.c:48
#1  0x00007f in _PyEval_EvalFrameDefault () from /usr/lib/libpython3.11.so.1.0
#2  0x00007f in ?? ()
[Inferior 1 (process 31) detached]
)";

TEST(Gdb, ReadsSymbolsModulesAndLines) {
  const auto job = read_dump(kGdb);
  const auto& process = only(job);
  EXPECT_EQ(process.pid, 31);
  EXPECT_EQ(process.role, model::Role::kRank);
  ASSERT_EQ(process.threads.size(), 2U);
  EXPECT_EQ(process.threads[0].tid, 31);
  EXPECT_EQ(process.threads[0].frames[0].function, "clock_nanosleep");
  EXPECT_EQ(process.threads[0].frames[0].line, 48);
  EXPECT_EQ(process.threads[0].frames[2].function, "");
  EXPECT_EQ(process.threads[1].name, "gloo_tcp_loop");
  EXPECT_EQ(process.threads[1].frames[1].function, "gloo::(anonymous namespace)::run(int)");
  EXPECT_EQ(process.threads[1].frames[1].module, "libtorch_cpu.so");
}

TEST(Gdb, ThreadOneEndsAProcess) {
  const std::string one(kGdb.substr(0, kGdb.find("[Inferior")));
  std::string other = one;
  for (std::size_t at = 0; (at = other.find("LWP 3", at)) != std::string::npos; ++at) {
    other[at + 4] = '4';
  }
  const auto job = read_dump(one + other);
  ASSERT_EQ(job.observations.size(), 1U);
  ASSERT_EQ(job.observations.front().processes.size(), 2U);
  EXPECT_EQ(job.observations.front().processes[1].pid, 41);
}

TEST(Gdb, PyBtTakesThePlaceOfTheInterpreter) {
  const std::string threads(kGdb.substr(0, kGdb.find("[Inferior")));
  const auto job = read_dump(threads +
                             "Thread 1 (Thread 0x7f02 (LWP 31) \"python\"):\n"
                             "Traceback (most recent call first):\n"
                             "  <built-in method sleep of module object at remote 0x7f>\n"
                             "  File \"/app/train.py\", line 7, in main (rank=1)\n"
                             "    time.sleep(9)\n"
                             "  File \"/app/train.py\", line 12, in <module> ()\n");
  const auto& frames = only(job).threads[0].frames;
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].function, "clock_nanosleep");
  EXPECT_EQ(frames[1].function, "main");
  EXPECT_EQ(frames[1].line, 7);
  EXPECT_EQ(frames[2].function, "<module>");
}

TEST(Gdb, SourcesOfLibcAndOfTheInterpreterAreNotTheUsers) {
  const auto job = read_dump(R"(Thread 1 (Thread 0x7f26 (LWP 91) "python"):
#0  ___pthread_cond_wait (cond=0x1, mutex=0x2) at ./nptl/pthread_cond_wait.c:618
#1  0x00007f26 in c10d::Work::wait(long) () from /usr/lib/libtorch_cpu.so
#2  0x00007f27 in _PyObject_VectorcallTstate (args=0x0) at /home/me/Python-3.11.7/Include/internal/pycore_call.h:92
#3  0x00007f27 in _PyEval_EvalFrameDefault (tstate=0x0) at Python/ceval.c:4769
#4  0x00007f28 in Py_RunMain () at Modules/main.c:680
#5  0x00007f29 in __libc_start_call_main (main=0x1) at ../sysdeps/nptl/libc_start_call_main.h:58
[Inferior 1 (process 91) detached]
)");
  EXPECT_EQ(model::user_frame(only(job).threads.front()), nullptr);
}

TEST(Gdb, TheRankThatWaitsForNobodyIsTheParentOfAChildThatComputes) {
  const auto process = [](int pid, std::string_view name, std::string_view inner) {
    return fmt::format(
        "Thread 2 (Thread 0x7f26 (LWP {1}) \"pt_gloo_runloop\"):\n"
        "#0  0x00007f27 in c10d::ProcessGroupGloo::runLoop(int) () from /usr/lib/libtorch_cpu.so\n"
        "Thread 1 (Thread 0x7f26 (LWP {0}) \"{2}\"):\n"
        "#0  0x00007f26 in {3} () from /usr/lib/x.so\n"
        "#1  0x00007f27 in _PyEval_EvalFrameDefault () from /usr/lib/libpython3.so\n"
        "[Inferior 1 (process {0}) detached]\n",
        pid, pid + 1, name, inner);
  };
  const auto job =
      read_dump(process(10, "python", "c10d::Work::wait(long)") + process(20, "python", "poll") +
                R"(Thread 1 (Thread 0x7f26 (LWP 40) "pt_data_worker"):
#0  0x00007f26 in gomp_team_barrier_wait_end () from /usr/lib/libgomp.so.1
#1  0x00007f27 in _PyEval_EvalFrameDefault () from /usr/lib/libpython3.so
[Inferior 1 (process 40) detached]
)");
  const auto& processes = job.observations.back().processes;
  ASSERT_EQ(processes.size(), 3U);
  EXPECT_EQ(processes[2].role, model::Role::kDataLoaderWorker);
  EXPECT_EQ(processes[2].ppid, 20);
}

TEST(EuStack, ReadsThreadsAndModules) {
  const auto job = read_dump(
      "PID 20 - process\nTID 20:\n#0  0x00007f267baa3f16 pthread_cond_wait@@GLIBC_2.3.2\n"
      "#1  0x00007f26 c10d::Work::wait(long) - /usr/lib/libtorch_cpu.so\n    "
      "../c10d/Work.cpp:80:3\n"
      "TID 21:\n#0  0x00007f267bb26f36 epoll_wait\n");
  const auto& process = only(job);
  EXPECT_EQ(process.role, model::Role::kRank);
  ASSERT_EQ(process.threads.size(), 2U);
  EXPECT_EQ(process.threads[0].frames[0].function, "pthread_cond_wait");
  EXPECT_EQ(process.threads[0].frames[0].module, "libc.so.6");
  EXPECT_EQ(process.threads[0].frames[1].module, "libtorch_cpu.so");
  EXPECT_EQ(process.threads[0].frames[1].line, 80);
}

TEST(Dumps, WithoutRanksAreNumberedByPid) {
  auto job = read_text(
      "Process 90: python train.py\nThread 90 (idle): \"MainThread\"\n    f (a.py:1)\n", "b.txt");
  merge(*job, *read_text(
                  "Process 80: python train.py\nThread 80 (idle): \"MainThread\"\n    f (a.py:1)\n",
                  "a.txt"));
  EXPECT_TRUE(settle_dumps(*job));
  EXPECT_EQ(model::rank_process(*job, 0)->pid, 80);
  EXPECT_EQ(model::rank_process(*job, 1)->pid, 90);
  ASSERT_FALSE(job->coverage.warnings.empty());
  EXPECT_NE(job->coverage.warnings.back().find("rank 0 is pid 80"), std::string::npos);
}

TEST(Dumps, ALineAboveNamesTheRank) {
  const auto job = read_dump(
      "$ for r in 4 2; do ...\n=== rank 4 ===\n" + std::string("Process 9: python t.py\n") +
      "Thread 9 (idle): \"MainThread\"\n    f (a.py:1)\n\n=== rank 2 ===\n"
      "Process 8: python t.py\nThread 8 (idle): \"MainThread\"\n    f (a.py:1)\n");
  EXPECT_EQ(model::ranks_seen(job), model::RankSet({2, 4}));
}

TEST(Dumps, LaunchersAndWorkersAreNoRanks) {
  const auto job = read_dump(
      "Process 5: python -m torch.distributed.run t.py\nThread 5 (idle): \"MainThread\"\n    run "
      "(torch/distributed/run.py:1)\nProcess 6: python t.py\nThread 6 (idle): \"MainThread\"\n    "
      "f "
      "(t.py:1)\nProcess 7: python t.py\nThread 7 (idle): \"MainThread\"\n    __getitem__ "
      "(t.py:3)\n    "
      "_worker_loop (torch/utils/data/_utils/worker.py:334)\n    f (t.py:1)\n");
  const auto& all = job.observations.front().processes;
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].role, model::Role::kLauncher);
  EXPECT_EQ(all[1].rank, 0);
  EXPECT_EQ(all[2].role, model::Role::kDataLoaderWorker);
  EXPECT_EQ(all[2].ppid, 6);
}

TEST(Dumps, RanksStandInPathsAndCommands) {
  EXPECT_EQ(rank_in_path("d/rank_3.txt", {}), 3);
  EXPECT_EQ(rank_in_path("d/node0-rank12.log", {}), 12);
  EXPECT_EQ(rank_in_path("logs/none_x/attempt_0/5/stderr.log", {}), 5);
  EXPECT_EQ(rank_in_path("rank7/py-spy.txt", {}), 7);
  EXPECT_FALSE(rank_in_path("cranky3.txt", {}));
  StackDump dump = new_dump();
  dump.process.pid = 31;
  EXPECT_EQ(rank_in_path("py-spy-3.txt", {dump}), 3);
  EXPECT_FALSE(rank_in_path("py-spy-31.txt", {dump}));
  EXPECT_EQ(rank_in_command({"python", "t.py", "--local_rank=2"}), 2);
  EXPECT_EQ(rank_in_command({"python", "t.py", "--rank", "4"}), 4);
  EXPECT_FALSE(rank_in_command({"python", "t.py", "--rank-by", "4"}));
}

TEST(Dumps, WhoIsNamedARankIsOneAlsoWithoutPythonAndTorch) {
  const auto job = read_text(
      "=== rank 3 ===\n\nThread 1 (Thread 0x7f535e7fb000 (LWP 503) \"python\"):\n"
      "#0  0x00007f61cb55 in read () from /lib/x86_64-linux-gnu/libc.so.6\n"
      "#1  0x00000000005b in Py_BytesMain ()\n",
      "paste.txt");
  ASSERT_TRUE(job);
  ASSERT_EQ(job->observations.size(), 1U);
  EXPECT_EQ(job->observations[0].processes.at(0).rank, 3);
}

TEST(Dumps, AHostStandsInPaths) {
  EXPECT_EQ(host_in_path("dumps/node12/stack.txt"), "node12");
  EXPECT_EQ(host_in_path("job-worker-3.txt"), "worker-3");
  EXPECT_EQ(host_in_path("Host0_gpu1.txt"), "host0");
  EXPECT_EQ(host_in_path("node1/node2.txt"), "node2");
  EXPECT_EQ(host_in_path("anode3.txt"), "");
  EXPECT_EQ(host_in_path("nodes/rank3.txt"), "");
  EXPECT_EQ(host_in_path("worker_main.py.txt"), "");
}

TEST(Dumps, OnePidOnTwoHostsAreTwoRanks) {
  const auto dump_of = [](const std::string& path) {
    StackDump dump = new_dump();
    dump.process.pid = 57;
    model::Thread* main = add_thread(dump, 57, "MainThread");
    model::Frame frame;
    frame.language = model::Language::kPython;
    frame.file = "/srv/t.py";
    add_frame(*main, std::move(frame));
    std::vector<StackDump> dumps{std::move(dump)};
    return job_of_dumps(std::move(dumps), path, "py-spy");
  };
  for (const char* names : {"node9/dump_0.txt|node10/dump_0.txt", "node9_a.txt|node10_a.txt"}) {
    const std::string both = names;
    model::JobModel job = dump_of(both.substr(0, both.find('|')));
    model::JobModel other = dump_of(both.substr(both.find('|') + 1));
    merge(job, std::move(other));
    ASSERT_TRUE(settle_dumps(job));
    ASSERT_EQ(job.observations.size(), 1U) << names;
    EXPECT_EQ(job.observations[0].processes[0].rank, 0) << names;
    EXPECT_EQ(job.observations[0].processes[1].rank, 1) << names;
  }
}

TEST(Dumps, WhoWasNotDumpedIsNotAbsent) {
  auto job = read_text(kPySpy, "x.txt");
  job->world_size = 5;
  settle_dumps(*job);
  EXPECT_EQ(job->coverage.unobserved_ranks, model::RankSet({0, 1, 2, 4}));
}

TEST(Dumps, WhatIsNoDumpStaysInTheLog) {
  const auto job = read_dump("[rank3]: loss 0.3\n" + std::string(kPySpy) + "loss 0.2\n");
  ASSERT_EQ(job.logs.size(), 1U);
  EXPECT_EQ(job.logs[0].text.find("all_reduce"), std::string::npos);
  EXPECT_NE(job.logs[0].text.find("loss 0.2"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::imports
