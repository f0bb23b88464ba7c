// SPDX-License-Identifier: Apache-2.0
// gdb used by hand: threads selected one after the other, lists of threads, mutexes printed.
#include <string>

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

const std::string kTwoThreads =
    "(gdb) thread 1\n[Switching to thread 1 (Thread 0x7f01 (LWP 71))]\n"
    "#0  0x00007f01 in __lll_lock_wait () from /lib/libpthread.so.0\n"
    "52      lowlevellock.c: No such file or directory.\n"
    "(gdb) bt\n"
    "#0  0x00007f01 in __lll_lock_wait () from /lib/libpthread.so.0\n"
    "#1  0x00007f02 in __GI___pthread_mutex_lock (mutex=0x7e98) at "
    "../nptl/pthread_mutex_lock.c:80\n"
    "#2  0x00007f03 in store::Table::get(int) () from /opt/libstore.so\n";

const std::string kSecond =
    "(gdb) info threads\n"
    "  Id   Target Id                              Frame\n"
    "* 1    Thread 0x7f01 (LWP 71) \"python\"        __lll_lock_wait () at lowlevellock.c:52\n"
    "  2    Thread 0x7f02 (LWP 75) \"python\"        0x00007f04 in poll () from /lib/libc.so.6\n"
    "  5    Thread 0x7f05 (LWP 78) \"reader\"        0x00007f05 in read () from /lib/libc.so.6\n"
    "(gdb) thread 2\n[Switching to thread 2 (Thread 0x7f02 (LWP 75))]\n"
    "#0  0x00007f04 in poll () from /lib/libc.so.6\n"
    "(gdb) bt\n"
    "#0  0x00007f04 in poll () from /lib/libc.so.6\n"
    "#1  0x00007f05 in store::Table::fill() () from /opt/libstore.so\n";

TEST(GdbSession, ThreadsSelectedOneAfterTheOtherAreOfOneProcess) {
  const auto job = read_dump(kTwoThreads + kSecond);
  EXPECT_EQ(only(job).pid, 71);
  ASSERT_EQ(only(job).threads.size(), 3U);
  EXPECT_EQ(only(job).threads[0].frames.size(), 3U);
  EXPECT_EQ(only(job).threads[1].tid, 75);
  EXPECT_EQ(only(job).threads[1].frames.size(), 2U);
  EXPECT_EQ(only(job).threads[2].name, "reader");
  EXPECT_TRUE(only(job).threads[2].frames.empty());  // a frame in a list is not a stack
}

TEST(GdbSession, AFrameShownAloneIsNoPartOfTheStack) {
  const auto job =
      read_dump(kTwoThreads +
                "(gdb) f 1\n#1  0x00007f02 in __GI___pthread_mutex_lock (mutex=0x7e98) "
                "at ../nptl/pthread_mutex_lock.c:80\n80      in ../nptl/x.c\n");
  EXPECT_EQ(only(job).threads.at(0).frames.size(), 3U);
}

TEST(GdbSession, TheOwnerPrintedOfAMutexIsOfTheThreadThatWaitsForIt) {
  const std::string owner =
      "$1 = {__data = {__lock = 2, __count = 0, __owner = 75, __nusers = 1, __kind = 0}}\n";
  const auto of = [&](const std::string& command) {
    const auto job = read_dump(kTwoThreads + command + owner);
    const auto& waits = only(job).threads.at(0).waits_on;
    return waits ? waits->target : std::string();
  };
  EXPECT_EQ(of("(gdb) p *(pthread_mutex_t*)0x7e98\n"), "thread:75");
  EXPECT_EQ(of("(gdb) p *mutex\n"), "thread:75");
  EXPECT_EQ(of("(gdb) p *(pthread_mutex_t*)0x7fff\n"), "");  // another mutex
}

TEST(GdbSession, ATableBelowAStackNamesItsThread) {
  const std::string stack =
      "(gdb) bt\n"
      "#0  __lll_lock_wait () at lowlevellock.S:135\n"
      "#1  0x00007f02 in __GI___pthread_mutex_lock (mutex=0x7e98) at pthread_mutex_lock.c:80\n"
      "#2  0x00007f03 in __kmp_lock_suspend_mx () from /opt/libiomp5.so\n"
      "(gdb) p *(pthread_mutex_t*)0x7e98\n"
      "$1 = {__data = {__lock = 2, __count = 0, __owner = 52547, __nusers = 1, __kind = 0}}\n";
  const std::string table =
      "(gdb) info threads\n"
      "  Id   Target Id         Frame\n"
      "* 1    Thread 0x7fc7 (LWP 26346) \"\" __lll_lock_wait () at lowlevellock.S:135\n";
  const auto job = read_dump(stack + table);
  ASSERT_EQ(only(job).threads.size(), 1U);
  EXPECT_EQ(only(job).threads[0].tid, 26346);
  EXPECT_EQ(only(job).threads[0].frames.size(), 3U);
  // Another thread is selected: the stack is not that of the first row.
  const auto two =
      read_dump(stack + table.substr(0, table.find("* 1")) +
                "  1    Thread 0x7fc7 (LWP 26346) \"\" poll () at poll.c:29\n"
                "* 2    Thread 0x7fc8 (LWP 26350) \"\" __lll_lock_wait () at lowlevellock.S:135\n");
  ASSERT_EQ(only(two).threads.size(), 2U);
  for (const model::Thread& thread : only(two).threads) {
    EXPECT_EQ(thread.frames.empty(), thread.tid == 26346);
  }
}

TEST(GdbSession, ThePagerDoesNotEndAStack) {
  const auto job = read_dump(
      "Attaching to process 71\n"
      "(gdb) bt\n#0  0x00007f01 in poll () from /lib/libc.so.6\n"
      "--Type <RET> for more, q to quit, c to continue without paging--c\n"
      "#1  0x00007f02 in read_all () from /opt/libstore.so\n"
      "---Type <return> to continue, or q <return> to quit---q\nQuit\n");
  EXPECT_EQ(only(job).threads.at(0).frames.size(), 2U);
}

TEST(GdbSession, PyBtShowsWhoWaitsForTheGil) {
  const auto job = read_dump(
      "Thread 3 (Thread 0x7f05 (LWP 78)):\nTraceback (most recent call first):\n"
      "  Waiting for the GIL\n  File \"/srv/train.py\", line 7, in main\n    run()\n");
  ASSERT_TRUE(only(job).threads.at(0).waits_on);
  EXPECT_EQ(only(job).threads[0].waits_on->kind, "gil");
}

std::string parent_and_child(const std::string& pointer, const std::string& of_child) {
  return "Attaching to program: /usr/bin/python3.8, process 71\n"
         "  Id   Target Id         Frame\n"
         "* 1    Thread " +
         pointer +
         " (LWP 71) \"\" poll () at poll.c:29\n"
         "  2    Thread 0x7f2cfd9e7700 (LWP 75) \"\" poll () at poll.c:29\n\n"
         "Attaching to process 91\n(gdb) info threads\n"
         "  Id   Target Id         Frame\n"
         "* 1    Thread " +
         of_child +
         " (LWP 91) \"\" __lll_lock_wait () at lowlevellock.S:135\n"
         "(gdb) bt\n#0  __lll_lock_wait () at lowlevellock.S:135\n"
         "#1  0x00007f02 in store_open () from /opt/libstore.so\n";
}

TEST(GdbSession, AProcessWithTheMainThreadOfAnotherOneWasForkedFromIt) {
  const auto job = read_dump(parent_and_child("0x7f2d81c5e700", "0x7f2d81c5e700"));
  EXPECT_EQ(only(job).pid, 91);
  EXPECT_EQ(only(job).ppid, 71);
  EXPECT_EQ(model::facts(job, "fork").size(), 1U);
  const auto others = read_dump(parent_and_child("0x7f2d81c5e700", "0x7f2d81c5e740"));
  EXPECT_TRUE(model::facts(others, "fork").empty());
  // Without randomization all programs have their main thread there.
  const auto fixed = read_dump(parent_and_child("0x7ffff7d8a740", "0x7ffff7d8a740"));
  EXPECT_TRUE(model::facts(fixed, "fork").empty());
}

TEST(GdbSession, AnLwpOfFreeBsdIsNotAProcess) {
  const auto job = read_dump(
      "Attaching to program: /usr/local/bin/python3.10, process 71\n"
      "(gdb) thread apply all bt\n\nThread 2 (LWP 9002 of process 71):\n"
      "#0  0x01 in poll () from /lib/libc.so.7\n\nThread 1 (LWP 9001 of process 71):\n"
      "#0  0x01 in _umtx_op () from /lib/libc.so.7\n#1  0x02 in main () at app.c:3\n");
  EXPECT_EQ(only(job).pid, 71);
  ASSERT_EQ(only(job).threads.size(), 2U);
  EXPECT_EQ(only(job).threads[0].tid, 9001);
}

TEST(GdbSession, ABuiltinOfABufferedFileWaitsForItsLock) {
  const auto frames_of = [](const std::string& called) {
    const auto job = read_dump(
        "$ gdb -p 71\nAttaching to process 71\n(gdb) info threads\n"
        "  Id   Target Id         Frame \n* 1    Thread 0x7f3b1d7fa700 (LWP 71) \"python\" "
        "0x01 in do_futex_wait.constprop.1 () from /lib/libpthread.so.0\n(gdb) py-bt\n"
        "Traceback (most recent call first):\n  <built-in method " +
        called +
        " object at remote 0x7f01>\n  File \"/srv/work.py\", line 9, in main\n    out.flush()\n");
    return only(job).threads.front().frames;
  };
  const auto frames = frames_of("flush of _io.BufferedWriter");
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_TRUE(frames[0].function.starts_with("do_futex_wait"));
  EXPECT_EQ(frames[1].function, "<built-in method flush of _io.BufferedWriter object");
  EXPECT_EQ(frames_of("acquire of _thread.lock").size(), 2U);
}

TEST(GdbSession, ANewSessionIsAnotherProcess) {
  const std::string one =
      "$ gdb -q\n(gdb) bt\n#0  0x00007f01 in poll () from /lib/libc.so.6\n"
      "#1  0x00007f02 in read_all () from /opt/libstore.so\n(gdb) quit\n";
  EXPECT_EQ(read_dump(one + "rank 1:\n" + one).observations.front().processes.size() +
                read_dump(one).observations.front().processes.size(),
            3U);
}

TEST(GdbSession, StacksWithoutAnyNameAreOfTwoProcesses) {
  const auto py_bt = [](const std::string& function, const std::string& call) {
    return "Stack of the ones that wait in " + function +
           "\n(gdb) py-bt\nTraceback (most recent call first):\n  File \"/srv/train.py\", line 7, "
           "in " +
           function + "\n    " + call + "\n(gdb)\n\n";
  };
  const auto job = read_dump(py_bt("reduce", "dist.all_reduce(x)") + py_bt("load", "next(it)"));
  ASSERT_EQ(job.observations.size(), 1U);
  EXPECT_EQ(model::latest(job)->processes.size(), 2U);
  EXPECT_EQ(job.progress, model::Progress::kUnknown);
}

}  // namespace
}  // namespace ddpdoctor::imports
