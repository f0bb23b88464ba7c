// SPDX-License-Identifier: Apache-2.0
// Tracebacks of Ctrl-C are stacks, one for each process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::string raised(int line, std::string_view exception = "KeyboardInterrupt") {
  return fmt::format(
      "Traceback (most recent call last):\n"
      "  File \"/srv/train.py\", line 40, in <module>\n    main()\n"
      "  File \"/srv/train.py\", line {}, in main\n    step(model)\n    ~~~~^^^^^^^\n{}\n",
      line, exception);
}

std::vector<int> lines_of_ranks(const model::JobModel& job) {
  std::vector<int> out;
  for (const model::Process& process : model::latest(job)->processes) {
    EXPECT_EQ(process.role, model::Role::kRank);
    out.push_back(process.threads.at(0).frames.at(0).line);
  }
  return out;
}

TEST(Interrupted, ATracebackOfCtrlCIsAStack) {
  const auto job = read_dump("step 7\n^C" + raised(12), "train.log");
  const auto& process = only(job);
  EXPECT_EQ(process.role, model::Role::kRank);
  ASSERT_EQ(process.threads.at(0).frames.size(), 2U);
  EXPECT_EQ(process.threads[0].frames[0].function, "main");
  EXPECT_EQ(process.threads[0].frames[0].line, 12);
  EXPECT_TRUE(model::was_dumped(process));
  EXPECT_EQ(model::source_line(job, "/srv/train.py", 12), "step(model)");
  EXPECT_EQ(job.logs.size(), 1U) << "the log keeps the lines";
}

TEST(Interrupted, AnExceptionIsNotAStack) {
  const auto job = read_dump(raised(12, "ValueError: KeyboardInterrupt"), "train.log");
  EXPECT_TRUE(job.observations.empty());
}

TEST(Interrupted, EachProcessIsARank) {
  const auto job = read_dump("^C" + raised(12) + "Process SpawnProcess-2:\n" + raised(14), "a.log");
  EXPECT_EQ(job.observations.size(), 1U);
  EXPECT_EQ(lines_of_ranks(job), (std::vector<int>{12, 14}));
}

std::string child(int number, std::string_view last, std::string_view target = "work") {
  return fmt::format(
      "Process SpawnProcess-{}:\nTraceback (most recent call last):\n"
      "  File \"/usr/lib/python3.11/multiprocessing/process.py\", line 314, in _bootstrap\n"
      "    self.run()\n"
      "  File \"/usr/lib/python3.11/multiprocessing/process.py\", line 108, in run\n"
      "    self._target(*self._args, **self._kwargs)\n"
      "  File \"/srv/train.py\", line 30, in {}\n    step()\n  File {}, in step\n    f()\n"
      "KeyboardInterrupt\n",
      number, target, last);
}

TEST(Interrupted, AChildWithTheFunctionOfARankIsARank) {
  constexpr std::string_view kCalls = "\"/v/site-packages/torch/distributed/x.py\", line 1";
  const auto job = read_dump(child(1, kCalls) + child(2, "\"/srv/data.py\", line 9"), "a.log");
  EXPECT_EQ(lines_of_ranks(job), (std::vector<int>{1, 9}));
  const auto other =
      read_dump(child(1, kCalls) + child(2, "\"/srv/data.py\", line 9", "serve"), "a.log");
  EXPECT_EQ(model::ranks_seen(other), model::RankSet({0}));
}

TEST(Interrupted, TheNewestAttemptCounts) {
  std::string steps;
  for (int i = 0; i < 30; ++i) {
    steps += fmt::format("step {}\n", i);
  }
  const auto job = read_dump("^C" + raised(12) + steps + "^C" + raised(14), "a.log");
  EXPECT_EQ(lines_of_ranks(job), (std::vector<int>{14}));
}

TEST(Interrupted, OfAChainTheFirstPlaceCounts) {
  const std::string handling =
      "\nDuring handling of the above exception, another exception occurred:\n\n";
  const auto job = read_dump(raised(11, "queue.Empty") + handling + "^C" + raised(12) + handling +
                                 raised(14) + handling + raised(15, "SystemExit: 1"),
                             "a.log");
  EXPECT_EQ(lines_of_ranks(job), (std::vector<int>{12}));
}

TEST(Interrupted, ExitHandlersAndDestructorsShowNoStack) {
  const auto job = read_dump(
      "Exception ignored in: <module 'threading' from '/usr/lib/python3.11/threading.py'>\n" +
          raised(12) + "Error in atexit._run_exitfuncs:\n" + raised(13),
      "a.log");
  EXPECT_TRUE(job.observations.empty());
}

TEST(Interrupted, ASecondKeyInAnExitHandlerAddsNoProcess) {
  const auto job = read_dump("^C" + raised(12) +
                             "^CException ignored in atexit callback: <function end at 0x7f>\n" +
                             raised(31, "KeyboardInterrupt: "));
  EXPECT_EQ(lines_of_ranks(job), (std::vector<int>{12}));
}

TEST(Interrupted, LinesWithRanksAreStacksOfTheseRanks) {
  std::string text;
  for (const int rank : {3, 1}) {
    const std::string twice = raised(10 + rank) + raised(20);
    for (const std::string_view line : base::split(twice, '\n')) {
      text += line.empty() ? "" : fmt::format("[rank{}]: {}\n", rank, line);
    }
  }
  const auto job = read_dump(text, "a.log");
  EXPECT_EQ(model::rank_process(job, 1)->threads.at(0).frames.at(0).line, 11);
  EXPECT_EQ(model::rank_process(job, 3)->threads.at(0).frames.at(0).line, 13);
  EXPECT_EQ(job.observations.back().processes.size(), 2U);
}

TEST(Interrupted, TheHandlerIsNotThePlace) {
  const auto job = read_dump(
      "Traceback (most recent call last):\n"
      "  File \"/srv/train.py\", line 40, in <module>\n    main()\n"
      "  File \"/srv/train.py\", line 9, in stop\n    raise KeyboardInterrupt\n"
      "KeyboardInterrupt\n",
      "a.log");
  EXPECT_EQ(only(job).threads.at(0).frames.at(0).line, 40);
}

TEST(Interrupted, ALauncherIsNoRank) {
  const auto job = read_dump(
      "Traceback (most recent call last):\n"
      "  File \"/venv/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n"
      "  File \"/venv/lib/python3.11/site-packages/torch/distributed/run.py\", line 879, in main\n"
      "    run(args)\n"
      "  File \"/venv/lib/python3.11/site-packages/torch/distributed/elastic/multiprocessing/"
      "api.py\", line 84, in _terminate_process_handler\n"
      "    raise SignalException(f\"Process {os.getpid()} got signal: {sigval}\", sigval=sigval)\n"
      "torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 2\n",
      "a.log");
  EXPECT_TRUE(job.observations.empty());
}

}  // namespace
}  // namespace ddpdoctor::imports
