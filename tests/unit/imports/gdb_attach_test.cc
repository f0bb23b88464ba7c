// SPDX-License-Identifier: Apache-2.0
// gdb's lines before a stack: the process it attached to, and that process's threads.
#include <string>

#include <gtest/gtest.h>

#include "collector/imports/logs/text_file.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::string attached(int pid, const std::string& others = {}) {
  return "Attaching to process " + std::to_string(pid) + "\n" + others +
         "(gdb) bt\n#0  0x00007f01 in poll () from /lib/libc.so.6\n"
         "#1  0x00007f02 in cudaStreamSynchronize () from /usr/lib/libcudart.so.12\n";
}

TEST(GdbAttach, ABareBacktraceIsOfTheProcessThatGdbAttachedTo) {
  const auto job = read_dump(attached(71));
  EXPECT_EQ(only(job).pid, 71);
  EXPECT_EQ(only(job).threads.size(), 1U);
  EXPECT_EQ(only(job).threads[0].tid, 71);
}

TEST(GdbAttach, ThreadsWithoutAStackAreKnown) {
  const auto job = read_dump(attached(71, "[New LWP 75]\n[New LWP 76]\n"));
  ASSERT_EQ(only(job).threads.size(), 3U);
  EXPECT_EQ(only(job).threads[0].frames.size(), 2U);
  EXPECT_TRUE(only(job).threads[2].frames.empty());
}

TEST(GdbAttach, TheCommandNamesTheProcess) {
  const std::string stack =
      "(gdb) bt\n#0  0x00007f01 in poll () from /lib/libc.so.6\n"
      "#1  0x00007f02 in cudaStreamSynchronize () from /usr/lib/libcudart.so.12\n";
  for (const std::string command : {"% gdb -p 71", "me@node:~$ sudo /usr/bin/gdb --pid=71 ./python",
                                    "gdb -q --pid 71 -batch -ex bt"}) {
    EXPECT_EQ(only(read_dump(command + "\n" + stack)).pid, 71) << command;
  }
  for (const std::string other : {"% gdb -p $PID", "% py-spy dump -p 71", "% gdbserver -p 71"}) {
    EXPECT_NE(only(read_dump(other + "\n" + stack)).pid, 71) << other;
  }
}

TEST(GdbAttach, StacksThatWereLeftOutDoNotEndTheProcess) {
  const auto job = read_dump(
      "% gdb -p 71\n(gdb) thread apply 1 9 bt\n\n"
      "Thread 1 (Thread 0x7f01 (LWP 71) \"python\"):\n#0  0x00007f01 in poll () from "
      "/lib/libc.so.6\n"
      "#1  0x00007f02 in main ()\n[...]\n\n"
      "Thread 9 (Thread 0x7f09 (LWP 80) \"python\"):\n#0  0x00007f01 in poll () from "
      "/lib/libc.so.6\n"
      "#1  0x00007f02 in start_thread ()\n");
  EXPECT_EQ(only(job).threads.size(), 2U);
}

TEST(GdbAttach, TwoProcessesInOneTextAreTwo) {
  const auto job = read_dump(attached(71) + attached(72));
  ASSERT_EQ(model::latest(job)->processes.size(), 2U);
  EXPECT_EQ(model::latest(job)->processes[1].pid, 72);
}

TEST(GdbAttach, PyBtAfterABareBacktraceBelongsToIt) {
  const auto job = read_dump(attached(71) +
                             "(gdb) py-bt\nTraceback (most recent call first):\n"
                             "  File \"/srv/train.py\", line 7, in main\n    x.item()\n");
  const model::Frame* const user = model::user_frame(only(job).threads.at(0));
  ASSERT_NE(user, nullptr);
  EXPECT_EQ(user->line, 7);
}

}  // namespace
}  // namespace ddpdoctor::imports
