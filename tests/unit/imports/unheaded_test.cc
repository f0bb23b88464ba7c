// SPDX-License-Identifier: Apache-2.0
// Frames without the line that names their thread.
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

const std::string kMain =
    "wait (threading.py:320)\nget (queue.py:171)\nmain (feed.py:31)\n<module> (feed.py:40)\n";
const std::string kHelper =
    "read (loader.py:12)\nrun (threading.py:953)\n_bootstrap_inner (threading.py:1016)\n"
    "_bootstrap (threading.py:973)\n";

std::size_t processes_in(const std::string& text) {
  const auto job = read_dump(text);
  return job.observations.empty() ? 0 : job.observations.back().processes.size();
}

TEST(Unheaded, FramesOfPySpyAreOneThreadWithoutAPid) {
  EXPECT_TRUE(is_py_spy("It hangs:\n\n" + kMain, "x"));
  const auto job = read_dump("It hangs:\n\n" + kMain);
  const model::Process& process = only(job);
  EXPECT_EQ(process.pid, 0);
  ASSERT_EQ(process.threads.size(), 1U);
  EXPECT_EQ(process.threads[0].frames.size(), 4U);
}

TEST(Unheaded, AThreadBelongsToTheStackNextToIt) {
  const auto job = read_dump(kMain + "and the helper\n" + kHelper);
  ASSERT_EQ(only(job).threads.size(), 2U);
  EXPECT_EQ(only(job).threads[0].frames.back().function, "<module>");
}

TEST(Unheaded, TwoMainThreadsAreTwoProcesses) {
  EXPECT_EQ(processes_in(kMain + "\nthe other rank:\n" + kMain), 2U);
}

TEST(Unheaded, FramesOfALibraryAloneShowNoProcess) {
  EXPECT_EQ(processes_in("recv_bytes (multiprocessing/connection.py:221)\n"
                         "get (multiprocessing/queues.py:103)\n"
                         "_process_worker (concurrent/futures/process.py:244)\n"),
            0U);
}

TEST(Unheaded, LogLinesAreNotFrames) {
  const std::string log = "start (main.py:3)\nLoading weights (main.py:12)\ndone (main.py:15)\n";
  EXPECT_FALSE(is_py_spy(log, "x"));
  EXPECT_EQ(processes_in(log), 0U);
}

TEST(Unheaded, FramesBelowATimeoutOfFaulthandlerAreOneThread) {
  const auto job = read_dump(
      "Timeout (0:02:00)!\nFile \"/app/feed.py\", line 31 in main\n"
      "File \"/app/feed.py\", line 40 in <module>\nError: canceled\n");
  ASSERT_EQ(only(job).threads.size(), 1U);
  EXPECT_EQ(only(job).threads[0].frames.size(), 2U);
}

TEST(Unheaded, ATracebackIsNotOfFaulthandler) {
  EXPECT_EQ(processes_in("  File \"/app/feed.py\", line 31, in main\n"
                         "  File \"/app/feed.py\", line 40, in <module>\nValueError: no\n"),
            0U);
}

TEST(Unheaded, KernelStacksBelowAPidAreOfThatProcess) {
  const auto job = read_dump(
      "== 1533\n[<0>] nfs_file_read+0x63/0xb0 [nfs]\n[<0>] "
      "vfs_read+0x20a/0x360\n");
  ASSERT_EQ(job.facts.size(), 1U);
  EXPECT_EQ(job.facts[0].pid, 1533);
}

}  // namespace
}  // namespace ddpdoctor::imports
