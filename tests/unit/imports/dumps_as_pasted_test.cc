// SPDX-License-Identifier: Apache-2.0
// Dumps as people paste them: without numbers, colons or first lines, broken by pagers.
#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

TEST(PastedDumps, APySpyThreadNeedsNoNumber) {
  const auto job = read_dump(
      "Thread (idle): \"MainThread\"\n    get (queue.py:180)\n    fetch (load.py:455)\n"
      "Thread (idle): \"Thread-3 (_pin_memory_loop)\"\n    select (selectors.py:415)\n");
  ASSERT_EQ(model::latest(job)->processes.size(), 1U);
  EXPECT_EQ(model::latest(job)->processes[0].threads.size(), 2U);
}

TEST(PastedDumps, AGdbHeadingNeedsNoColon) {
  const auto job = read_dump(
      "Thread 58 (Thread 0x15535d20d700 (LWP 1823817)):\n#0  0x00001555 in ncclCommAbort () at "
      "init.cc:1508\n\nThread 1 (Thread 0x15555518b740 (LWP 1811075))\n#0  0x00001555 in ?? () "
      "from /lib64/libcuda.so.1\n");
  ASSERT_EQ(model::latest(job)->processes.size(), 1U);
  EXPECT_EQ(model::latest(job)->processes[0].pid, 1811075);
}

TEST(PastedDumps, ABrokenLineOfGdbGoesOnWithItsPlace) {
  const auto job = read_dump(
      "(gdb) bt\n#0  0x00007f88 in ?? () from /usr/lib/libcuda.so.1\n#1  0x00007f90 in "
      "cudaLaunchKernel ()\n   from /venv/lib/libcudart.so.12\n");
  const auto& frames = only(job).threads.at(0).frames;
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[1].module, "libcudart.so.12");
  EXPECT_EQ(only(job).role, model::Role::kRank);
}

TEST(PastedDumps, AStackWithoutItsEndIsOfTheMainThread) {
  constexpr std::string_view kCut =
      "Thread 3297 (active): \"MainThread\"\n"
      "    all_gather_coalesced (deepspeed/runtime/zero/partition_parameters.py:1254)\n"
      "    wrapped_fn (deepspeed/utils/nvtx.py:18)\n"
      "    forward (transformers/models/mixtral/modeling_mixtral.py:676)\n";
  const model::JobModel job = read_dump(kCut);
  const model::Frame* place = model::user_frame(only(job).threads.at(0));
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(place->line, 1254);
}

constexpr std::string_view kExcerpt =
    "Thread 82 (idle): \"runner\"\n    spin (jobs.py:6)\n"
    "Thread 71 (idle): \"MainThread\"\n    get (queue.py:171)\n    main (serve.py:9)\n";

TEST(PastedDumps, ThreadsAboveTheMainThreadAreOfItsProcess) {
  const std::string excerpt(kExcerpt);
  for (const std::string& text :
       {excerpt, "$ py-spy dump --native --pid 71 | less   # hangs\n\n" + excerpt}) {
    const auto job = read_dump(text);
    EXPECT_EQ(only(job).pid, 71);
    ASSERT_EQ(only(job).threads.size(), 2U);
    EXPECT_EQ(only(job).threads[1].name, "runner");
  }
  const auto alone =
      read_dump("$ py-spy dump -p 71\nThread 82 (idle): \"runner\"\n    a (b.py:6)\n");
  EXPECT_EQ(only(alone).pid, 71);
}

TEST(PastedDumps, ASecondMainThreadIsOfTheNextProcess) {
  const std::string other =
      "Thread 72 (idle): \"MainThread\"\n    get (queue.py:171)\n    main (serve.py:9)\n";
  const auto job = read_dump("$ py-spy dump --pid 71\n" + std::string(kExcerpt) + other);
  ASSERT_EQ(job.observations.front().processes.size(), 2U);
}

TEST(PastedDumps, SedShowsTheSourceOfAFrame) {
  const std::string dump =
      "Process 71: python work.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
      "Thread 71 (idle): \"MainThread\"\n    stop (jobs/util/child.py:12)\n";
  const auto line = [&dump](const std::string& shown, int number) {
    const auto job = read_dump(dump + shown);
    const auto file = job.sources.find("jobs/util/child.py");
    return file == job.sources.end() || !file->second.contains(number) ? std::string()
                                                                       : file->second.at(number);
  };
  EXPECT_EQ(line("% sed -n 12p util/child.py\n    os.waitpid(pid, 0)\n", 12),
            "    os.waitpid(pid, 0)");
  EXPECT_EQ(line("$ sed -n '11,12p' /srv/jobs/util/child.py\ndef stop():\n    wait()\n", 12),
            "    wait()");
  // The lines of a different file; a command that shows no lines.
  EXPECT_EQ(line("% sed -n 12p other.py\n    os.waitpid(pid, 0)\n", 12), "");
  EXPECT_EQ(line("% sed -n 's/12p/x/' util/child.py\n    os.waitpid(pid, 0)\n", 12), "");
}

TEST(PastedDumps, ARemarkBehindAFrameIsNoPartOfIt) {
  const auto job = read_dump(
      "Thread 71 (idle): \"MainThread\"\n    join (threading.py:1149)\n"
      "    close (store.py:658)      <- stuck here (forever)\n    main (serve.py:9)  # ok\n");
  const auto& frames = only(job).threads.at(0).frames;
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[1].function, "close");
  EXPECT_EQ(frames[1].line, 658);
  EXPECT_EQ(frames[2].line, 9);
}

TEST(PastedDumps, MainThreadsAboveOneStackAllHaveIt) {
  const auto job = read_dump(
      "Thread 71 (active): \"MainThread\"\nThread 72 (active): \"MainThread\"\n"
      "    broadcast (torch/distributed/distributed_c10d.py:1191)\n    main (train.py:9)\n");
  const auto& processes = job.observations.front().processes;
  ASSERT_EQ(processes.size(), 2U);
  for (const model::Process& process : processes) {
    EXPECT_EQ(process.pid, process.threads.at(0).tid);
    EXPECT_EQ(process.threads.at(0).frames.size(), 2U);
  }
}

}  // namespace
}  // namespace ddpdoctor::imports
