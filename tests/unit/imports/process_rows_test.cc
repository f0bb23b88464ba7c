// SPDX-License-Identifier: Apache-2.0
// Tables of processes as ps, top and people print them, and what they say of dumped processes.
#include "collector/imports/stack_dumps/process_rows.h"

#include <string>

#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/imports/logs/text_file.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::vector<ProcessRow> rows(const std::string& text) {
  const auto lines = base::split(text, '\n');
  return process_rows(lines);
}

TEST(ProcessRows, AHeaderNamesTheColumns) {
  const auto read = rows(
      "UID          PID    PPID  C STIME TTY          TIME CMD\n"
      "me            71      70 99 10:02 ?        01:12:40 python fit.py --n 2\n"
      "me            72      71  0 Nov12 pts/0    00:00:00 python fit.py --n 2\n");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[1].pid, 72);
  EXPECT_EQ(read[1].ppid, 71);
  EXPECT_EQ(read[1].command, "python fit.py --n 2");
}

TEST(ProcessRows, TheListOfOptionsNamesThemWhereGrepRemovedTheHeader) {
  const auto read = rows(
      "$ ps -eo pid,stat,wchan:24,etime,cmd | grep fit\n"
      "  71 Dsl  nfs_wait_bit_killable  11:25:53 python fit.py\n");
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].state, 'D');
  EXPECT_EQ(read[0].wchan, "nfs_wait_bit_killable");
}

TEST(ProcessRows, TheShapeOfARowShowsThem) {
  const auto aux = rows(
      "$ ps aux | grep fit\n"
      "me   71 99.0  1.2 123456 7890 pts/1 Rl+ 10:02 72:40 python fit.py\n");
  ASSERT_EQ(aux.size(), 1U);
  EXPECT_EQ(aux[0].state, 'R');
  const auto ax = rows("$ ps ax | grep fit\n 71 pts/2    S+     0:00 python fit.py\n");
  ASSERT_EQ(ax.size(), 1U);
  EXPECT_EQ(ax[0].command, "python fit.py");
}

TEST(ProcessRows, ATreeShowsParents) {
  const auto read = rows(
      "   54 launch.sh\n"
      "   60  \\_ python\n"
      "   61      \\_ python <defunct>\n"
      "   70      |   \\_ python\n"
      "   62      \\_ python\n");
  ASSERT_EQ(read.size(), 5U);
  EXPECT_EQ(read[1].ppid, 54);
  EXPECT_EQ(read[2].ppid, 60);
  EXPECT_EQ(read[2].state, 'Z');
  EXPECT_EQ(read[4].ppid, 60);
}

TEST(ProcessRows, OtherTextHasNone) {
  EXPECT_TRUE(rows("steps 12 of 14 pts/2\n 71 pts/2 S+ 0:00 python\n").empty());
  EXPECT_TRUE(rows("PID of the worker: 71\nloss 12 3 4\n").empty());
}

std::string dumped(const std::string& table, const std::string& frames) {
  return table + "$ gdb -p 72\n(gdb) bt\n#0  0x00007f01 in poll () from /lib/libc.so.6\n" + frames;
}

TEST(ProcessRows, AChildWithTheCommandOfItsParentWasForked) {
  const std::string frames = "#1  0x00007f02 in work () from /lib/libx.so\n";
  const auto forks = [&](const std::string& child) {
    auto job = *read_text(dumped("$ ps -ef\nme 71 70 0 10:02 ? 00:00:01 python fit.py\n"
                                 "me 72 71 0 10:02 ? 00:00:01 " +
                                     child + "\n",
                                 frames),
                          "dump.txt");
    settle_dumps(job);
    std::size_t found = 0;
    for (const model::Fact& fact : job.facts) {
      found += fact.kind == "fork" && fact.pid == 72 ? 1 : 0;
      EXPECT_NE(fact.kind, "listed-process");
    }
    return found;
  };
  EXPECT_EQ(forks("python fit.py"), 1U);
  EXPECT_EQ(forks("python other.py"), 0U);
}

TEST(JoinedDumps, TheFramesOfTwoToolsAreOneStack) {
  const std::string py_spy =
      "Process 72: python fit.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
      "Thread 72 (active): \"MainThread\"\n    step (/srv/fit.py:12)\n    <module> "
      "(/srv/fit.py:40)\n\n";
  const std::string gdb = dumped(
      "", "#1  0x00007f02 in work () from /lib/libx.so\n#2  0x55 in _PyEval_EvalFrameDefault ()\n");
  for (const std::string& text : {py_spy + gdb, gdb + "\n" + py_spy}) {
    const auto job = read_dump(text);
    ASSERT_EQ(only(job).threads.size(), 1U);
    ASSERT_EQ(only(job).threads[0].frames.size(), 4U);
    EXPECT_EQ(only(job).threads[0].frames[1].function, "work");
    EXPECT_EQ(only(job).threads[0].frames[2].function, "step");
  }
}

TEST(ProcessRows, ARankInStateDWithoutAStackIsAFact) {
  const auto sleepers = [](const std::string& first, const std::string& second) {
    const auto job = read_dump(
        "Thread 73 (active): \"MainThread\"\n    barrier "
        "(torch/distributed/distributed_c10d.py:2784)\n    main (fit.py:9)\n\n"
        "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\n"
        "me 71 99 1.2 123456 7890 ? " +
        first + " 10:02 72:40 python fit.py\nme 72 99 1.2 123456 7890 ? " + second +
        " 10:02 72:40 python fit.py\nme 73 99 1.2 123456 7890 ? Rl 10:02 72:40 python fit.py\n"
        "me 74 99 1.2 123456 7890 ? Dl 10:02 72:40 python other.py\n");
    std::vector<pid_t> pids;
    for (const model::Fact& fact : job.facts) {
      if (fact.kind == "listed-sleeper") {
        pids.push_back(fact.pid.value_or(0));
      }
    }
    return pids;
  };
  EXPECT_EQ(sleepers("Dl", "Rl"), (std::vector<pid_t>{71}));
  EXPECT_TRUE(sleepers("Rl", "Rl").empty()) << "only another program sleeps";
  EXPECT_TRUE(sleepers("Dl", "Dl").empty()) << "several read a file";
}

}  // namespace
}  // namespace ddpdoctor::imports
