// SPDX-License-Identifier: Apache-2.0
// Stacks printed by the program itself, in the forms that people write.
#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

const std::string kWorker =
    "  File \"/usr/lib/python3.11/threading.py\", line 1002, in _bootstrap\n"
    "    self._bootstrap_inner()\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 982, in run\n"
    "    self._target(*self._args, **self._kwargs)\n"
    "  File \"/srv/app/feed.py\", line 31, in fill\n"
    "    self.ready.wait()\n";
const std::string kMain =
    "  File \"/srv/app/train.py\", line 70, in <module>\n"
    "    main()\n"
    "  File \"/srv/app/train.py\", line 44, in main\n"
    "    batch = next(batches)\n";

void expect_both(const model::JobModel& job, std::string_view name = "") {
  const model::Process& process = only(job);
  ASSERT_EQ(process.threads.size(), 2U);
  EXPECT_EQ(process.threads[0].frames.size(), 2U);
  EXPECT_EQ(process.threads[0].frames[0].function, "main");
  EXPECT_EQ(process.threads[0].frames[0].line, 44);
  EXPECT_EQ(process.threads[1].frames.front().function, "fill");
  EXPECT_EQ(process.threads[1].name, name);
  EXPECT_EQ(process.role, model::Role::kRank);
  EXPECT_EQ(model::source_line(job, "/srv/app/train.py", 44), "batch = next(batches)");
}

TEST(PrintedStacks, HaveTheHeadingsOfTheProgram) {
  expect_both(read_dump("-- Stack for thread 22871049672256 ---\n" + kWorker +
                        "-- Stack for thread 22873410125952 ---\n" + kMain));
  expect_both(read_dump("caught signal 10\n# Thread: feeder(140203)\n" + kWorker +
                        "\n# Thread: MainThread(140555)\n" + kMain),
              "feeder");
  expect_both(
      read_dump("=== Stack dump ===\n\nThread: feeder (ID: 140203)\n------\n" + kWorker +
                "\nThread: MainThread (ID: 140555)\n------\n" + kMain + "=== End stack dump ===\n"),
      "feeder");
  expect_both(read_dump("<Thread(feeder, started daemon 140203)>\n" + kWorker +
                        "<_MainThread(MainThread, started 140555)>\n" + kMain),
              "feeder");
  expect_both(read_dump("Dumping Threads....\n\n" + kWorker + "\n" + kMain + "\n"));
}

TEST(PrintedStacks, MayHaveAColonAndNoMargin) {
  const auto job = read_dump(
      "# Thread: MainThread(140555)\nFile: \"/srv/app/train.py\", line 70, in <module>\n  main()\n"
      "File: \"/srv/app/train.py\", line 44, in main\n  batch = next(batches)\n");
  EXPECT_EQ(only(job).threads.at(0).frames.at(0).line, 44);
}

TEST(PrintedStacks, DoNotContainTheFunctionThatPrintsThem) {
  expect_both(read_dump("Thread 140203:\n" + kWorker + "\nThread 140555:\n" + kMain +
                        "  File \"/srv/app/debug.py\", line 9, in show\n"
                        "    traceback.print_stack(frame)\n"));
}

TEST(PrintedStacks, OfSeveralProcessesEndAtTheMainThread) {
  const std::string one = "Thread 140203:\n" + kWorker + "\nThread 140555:\n" + kMain + "\n";
  const auto job = read_dump("rank 0\n" + one + "rank 1\n" + one);
  ASSERT_EQ(job.observations.size(), 1U);
  EXPECT_EQ(job.observations[0].processes.size(), 2U);
}

TEST(PrintedStacks, AreNoTracebacks) {
  for (const std::string& text :
       {"Exception in thread feeder:\nTraceback (most recent call last):\n" + kWorker +
            "ValueError: no\n",
        "starting 4 threads\nTraceback (most recent call last):\n" + kMain + "OSError: no\n",
        "thread pool closed\n" + kMain + "RuntimeError: no\n",
        "2 threads are idle\nStack (most recent call last):\n" + kMain,
        "    thread.join()\n" + kMain, "self.thread.join()\n" + kMain}) {
    EXPECT_TRUE(read_dump(text).observations.empty()) << text;
  }
}

}  // namespace
}  // namespace ddpdoctor::imports
