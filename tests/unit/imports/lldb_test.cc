// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

const std::string kThreads =
    "* thread #1, name = 'python', stop reason = signal SIGSTOP\n"
    "  * frame #0: 0x00007fb0b7f0792d libc.so.6`syscall + 29\n"
    "    frame #1: 0x00007fb08faef142 libstdc++.so.6`std::future_wait(this=0x01, n=(r = 7)) at "
    "futex.cc:217:18\n"
    "    frame #2: 0x00007fb090db1068 libstore.so`store::Table::close(int) + 664\n"
    "  thread #17, name = 'python', stop reason = signal SIGSTOP\n"
    "    frame #0: 0x00007fb0b7ed5645 libc.so.6`clock_nanosleep + 101\n"
    "    frame #1: 0x00007fb0b7ed5646 libstore.so`outer(int) [inlined] store::wait_all at w.cc:3\n"
    "    frame #2: 0x00007fb0b7ed5647 libstore.so`___lldb_unnamed_symbol17\n";

TEST(Lldb, ReadsTheStacksOfAllThreads) {
  const auto job = read_dump("(lldb) thread backtrace all\n" + kThreads);
  ASSERT_EQ(only(job).threads.size(), 2U);
  const auto& frames = only(job).threads[0].frames;
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].function, "syscall");
  EXPECT_EQ(frames[0].module, "libc.so.6");
  EXPECT_EQ(frames[1].function, "std::future_wait");  // without the values
  EXPECT_EQ(frames[1].line, 217);
  EXPECT_EQ(frames[2].function, "store::Table::close(int)");  // with the types
  EXPECT_EQ(only(job).threads[1].name, "python #17");
  EXPECT_EQ(only(job).threads[1].frames.at(1).function, "store::wait_all");
  EXPECT_EQ(only(job).threads[1].frames.at(2).function, "");
}

TEST(Lldb, KnowsTheProcessAndTheNumbersOfTheSystem) {
  const auto job = read_dump(
      "(lldb) process attach --pid 71\nProcess 71 stopped\n"
      "* thread #1, name = 'python', stop reason = signal SIGSTOP\n"
      "    frame #0: 0x00007fb0b7f0792d libc.so.6`syscall + 29\nlibc.so.6`syscall:\n"
      "->  0x7fb0b7f0792d <+29>: cmpq $-0xfff, %rax\n(lldb) bt all\n" +
      kThreads);
  EXPECT_EQ(only(job).pid, 71);
  EXPECT_EQ(only(job).threads.at(0).tid, 71);
  EXPECT_EQ(only(job).threads.at(0).frames.size(), 3U);
  const auto older = read_dump(
      "* thread #1: tid = 0x4a2f, 0x01 libc.so.6`poll + 3, name = 'main', stop reason = signal\n"
      "    frame #0: 0x00007fb0b7f0792d libc.so.6`poll + 3\n");
  EXPECT_EQ(only(older).threads.at(0).tid, 0x4a2f);
}

TEST(Lldb, TwoProcessesInOneTextAreTwo) {
  const auto job = read_dump("Process 71 stopped\n" + kThreads + "Process 72 stopped\n" + kThreads);
  EXPECT_EQ(model::latest(job)->processes.size(), 2U);
}

TEST(Lldb, ALineAboutAThreadIsNoStack) {
  const auto job = read_log("worker: thread #4, name = 'loader', started\nloss 3.1\n");
  EXPECT_TRUE(job.observations.empty());
}

}  // namespace
}  // namespace ddpdoctor::imports
