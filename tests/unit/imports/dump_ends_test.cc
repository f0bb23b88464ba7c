// SPDX-License-Identifier: Apache-2.0
// Where the dump of one process ends and that of the next begins, with any text between threads. A
// thread that is taken for a process of its own becomes a rank that was never started, and is
// accused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/imports/logs/text_file.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

/// "0=91x3 1=92x1": rank, pid and number of threads of each process.
std::string told(const model::JobModel& job) {
  std::string out;
  for (const model::Process& process : model::latest(job)->processes) {
    out += fmt::format("{}{}={}x{}", out.empty() ? "" : " ", process.rank.value_or(-1), process.pid,
                       process.threads.size());
  }
  return out;
}

/// The output of `thread apply all py-bt` for a process with two threads of torch and one of
/// Python.
std::string py_bt(int pid) {
  return fmt::format(
      "Thread 3 (Thread 0x7f13 (LWP {2}) \"pt_gloo_runloop\"):\n"
      "Unable to locate python frame\n\n"
      "Thread 2 (Thread 0x7f12 (LWP {1}) \"gloo_tcp_loop\"):\n"
      "Unable to locate python frame\n\n"
      "Thread 1 (Thread 0x7f11 (LWP {0}) \"python\"):\n"
      "Traceback (most recent call first):\n"
      "  <built-in method wait of object at remote 0x7f>\n"
      "  File \"/app/train.py\", line 7, in main\n"
      "    dist.all_reduce(x)\n"
      "  File \"/app/train.py\", line 12, in <module>\n"
      "    main()\n",
      pid, pid + 1, pid + 2);
}

std::string detached(int pid) {
  return fmt::format("[Inferior 1 (process {}) detached]\n", pid);
}

TEST(Gdb, ThreadsWithoutPythonAreOfTheirProcess) {
  const auto job = read_dump(py_bt(91) + detached(91) + py_bt(95) + detached(95));
  EXPECT_EQ(told(job), "0=91x3 1=95x3");
  const auto& threads = model::latest(job)->processes[1].threads;
  EXPECT_EQ(threads[0].tid, 95);
  EXPECT_EQ(threads[0].frames.size(), 2U);
  EXPECT_TRUE(threads[1].frames.empty());
}

TEST(Gdb, PyBtAfterBtIsOfTheSameThreads) {
  std::string bt;
  for (int number = 3; number > 0; --number) {
    bt += fmt::format(
        "Thread {} (Thread 0x7f (LWP {}) \"python\"):\n#0  0x7f in poll () from /x.so\n", number,
        90 + number);
  }
  const auto job = read_dump(bt + "\n" + py_bt(91) + detached(91));
  EXPECT_EQ(told(job), "0=91x3");
}

TEST(Gdb, LinesOfOthersBetweenThreadsEndNoProcess) {
  std::string text = py_bt(91) + detached(91);
  text.replace(text.find("Unable"), 6, "step 12 loss 0.4\nCannot access memory\nUnable");
  EXPECT_EQ(told(read_dump(text)), "0=91x3");
}

TEST(Gdb, AHeadingEndsAProcess) {
  EXPECT_EQ(told(read_dump("=== rank 1 ===\n" + py_bt(91) + "=== rank 0 ===\n" + py_bt(95))),
            "1=91x3 0=95x3");
  // Only one thread of each process was pasted.
  const std::string one = py_bt(91).substr(py_bt(91).find("Thread 1"));
  const std::string other = py_bt(95).substr(py_bt(95).find("Thread 1"));
  EXPECT_EQ(told(read_dump("=== rank 1 ===\n" + one + "=== rank 0 ===\n" + other)),
            "1=91x1 0=95x1");
}

TEST(Gdb, FramesOfPyBtFullAreOfPython) {
  const auto job = read_dump(
      "Thread 1 (Thread 0x7f11 (LWP 91) \"python\"):\n"
      "#12 Frame 0x7f, for file /app/train.py, line 7, in main (rank=3)\n"
      "    dist.all_reduce(x)\n"
      "#20 Frame 0x7e, for file /app/train.py, line 12, in <module> ()\n"
      "    main()\n");
  const auto& frames = model::latest(job)->processes.at(0).threads.at(0).frames;
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].function, "main");
  EXPECT_EQ(frames[1].line, 12);
}

std::string pystack(int pid) {
  return fmt::format(
      "Traceback for thread {1} (python) [] (most recent call last):\n"
      "    (Python) File \"/usr/lib/python3.11/threading.py\", line 1002, in _bootstrap\n"
      "        self._bootstrap_inner()\n"
      "    (Python) File \"/app/data.py\", line 39, in spin\n"
      "        time.sleep(1)\n\n"
      "Traceback for thread {0} (python) [] (most recent call last):\n"
      "    (Python) File \"/app/train.py\", line 48, in <module>\n"
      "        main()\n"
      "    (Python) File \"/app/train.py\", line 26, in main\n"
      "        dist.all_reduce(x)\n",
      pid, pid + 1);
}

TEST(Pystack, EachHeadingNamesTheRankOfItsDump) {
  for (const std::string_view form :
       {"=== rank {} ===\n", "## rank {}\n", ">>> RANK={} pid 7\n", "Rank {}:\n"}) {
    std::string text;
    for (const auto& [rank, pid] : {std::pair(2, 91), std::pair(0, 93), std::pair(1, 95)}) {
      text += fmt::format(fmt::runtime(form), rank) + pystack(pid);
    }
    EXPECT_EQ(told(read_dump(text)), "2=91x2 0=93x2 1=95x2") << form;
  }
}

TEST(Pystack, LinesOfOthersBetweenThreadsEndNoProcess) {
  std::string text = pystack(91);
  text.insert(text.find("\nTraceback for thread 91") + 1, "step 12 loss 0.4\n");
  EXPECT_EQ(told(read_dump(text)), "0=91x2");
}

TEST(Pystack, ALocalMayHaveLinesOfItsOwn) {
  const auto job = read_dump(
      "Traceback for thread 91 (python) [] (most recent call last):\n"
      "    (Python) File \"/app/train.py\", line 48, in <module>\n"
      "        main()\n"
      "      Locals:\n"
      "        text: \"first\n"
      "rank 7 of a poem\"\n"
      "        rank: 3\n"
      "    (Python) File \"/app/train.py\", line 26, in main\n");
  EXPECT_EQ(told(job), "3=91x1");
  EXPECT_EQ(model::latest(job)->processes[0].threads[0].frames.size(), 2U);
}

std::string py_spy(int pid) {
  return fmt::format(
      "Thread {0} (idle): \"MainThread\"\n"
      "    all_reduce (torch/distributed/distributed_c10d.py:3252)\n"
      "    <module> (train.py:99)\n"
      "Thread {1} (active+gil): \"loader\"\n"
      "    spin (data.py:6)\n",
      pid, pid + 1);
}

TEST(PySpy, WithoutItsFirstLineTheMainThreadBeginsAProcess) {
  EXPECT_TRUE(is_py_spy(py_spy(91), "x"));
  EXPECT_FALSE(is_py_spy("Thread 1 (Thread 0x7f11 (LWP 91) \"python\"):\n", "x"));
  const auto job = read_dump(py_spy(91) + "\n" + py_spy(95) + "\n");
  EXPECT_EQ(told(job), "0=91x2 1=95x2");
}

TEST(PySpy, ATerminalsBlanksAndTabsAreNoText) {
  std::string text =
      "Process 91: python train.py\n" + py_spy(91) + "Thread 93 (idle)\n    f (a.py:3)\n";
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 4)) {
    text.insert(at, "   ");
  }
  for (std::size_t at = text.find("\n    "); at != text.npos; at = text.find("\n    ", at)) {
    text.replace(at, 5, "\n\t");
  }
  const auto job = read_dump(text);
  EXPECT_EQ(told(job), "0=91x3");
  const auto& main = model::latest(job)->processes[0].threads[0];
  EXPECT_EQ(main.name, "MainThread");
  EXPECT_EQ(main.frames.size(), 2U);
}

TEST(Faulthandler, AModuleThatRunsAsProgramEndsADump) {
  std::string text;
  for (const int address : {1, 2}) {
    text += fmt::format(
        "Thread 0x00007f5ae2e26{0}c0 (most recent call first):\n"
        "  File \"/app/data.py\", line 39 in spin\n"
        "  File \"/usr/lib/python3.11/threading.py\", line 1002 in _bootstrap\n\n"
        "Current thread 0x00007f5b03dc4{0}80 (most recent call first):\n"
        "  File \"/app/train.py\", line 48 in <module>\n"
        "  File \"<frozen runpy>\", line 88 in _run_code\n"
        "  File \"<frozen runpy>\", line 198 in _run_module_as_main\n",
        address);
  }
  EXPECT_EQ(told(read_dump(text)), "0=0x2 1=0x2");
  for (std::size_t at = text.find("<module>"); at != text.npos; at = text.find("<module>")) {
    // Copied from a page's source.
    text.replace(at, text.find("_as_main", at) + 8 - at, "&lt;module&gt;");
  }
  EXPECT_EQ(told(read_dump(text)), "0=0x2 1=0x2");
}

}  // namespace
}  // namespace ddpdoctor::imports
