// SPDX-License-Identifier: Apache-2.0
// Dumps of Python's faulthandler: alone, in logs of several ranks, after a crash.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/imports/logs/text_file.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kFaulthandler = R"(Timeout (0:00:30)!
Thread 0x00007f26f71336c0 [loader] (most recent call first):
  File "/app/data.py", line 327 in wait
  ...

Thread 0x00007f26f8c76b80 (most recent call first):
  File "/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 4287 in barrier
  File "/app/train.py", line 15 in <module>
)";

TEST(Faulthandler, ReadsThreadsMainFirst) {
  const auto job = read_dump(kFaulthandler, "hang_rank3.txt");
  const auto& process = only(job);
  EXPECT_EQ(process.rank, 3);
  ASSERT_EQ(process.threads.size(), 2U);
  EXPECT_EQ(process.threads[0].frames[1].line, 15);
  EXPECT_EQ(process.threads[0].frames[0].function, "barrier");
  EXPECT_EQ(process.threads[1].name, "loader");
  EXPECT_EQ(process.threads[0].name, "0x00007f26f8c76b80");  // its address is all that is known
}

TEST(Faulthandler, ATimerThatFiresAgainIsASecondLook) {
  const std::string twice = std::string(kFaulthandler) + std::string(kFaulthandler);
  const auto still = read_dump(twice, "rank_0.txt");
  ASSERT_EQ(still.observations.size(), 2U);
  EXPECT_EQ(still.progress, model::Progress::kStill);
  std::string moved = twice;
  moved.replace(moved.rfind("line 15"), 7, "line 16");
  EXPECT_EQ(read_dump(moved, "rank_0.txt").progress, model::Progress::kMoving);
}

TEST(Faulthandler, RanksOfOneLogAreToldApart) {
  std::string log;
  std::string_view text = kFaulthandler;
  while (!text.empty()) {  // mixed line by line, as when two ranks write at once
    const std::string line(text.substr(0, text.find('\n') + 1));
    log += "[default0]:" + line + "[rank1]: " + line;
    text.remove_prefix(line.size());
  }
  const auto job = read_dump(log);
  EXPECT_EQ(model::ranks_seen(job), model::RankSet({0, 1}));
  EXPECT_EQ(model::rank_process(job, 1)->threads.size(), 2U);
}

TEST(Faulthandler, ProcessesWithoutRankAreToldApartByTheirMainThreads) {
  std::string other(kFaulthandler);
  other.replace(other.find("0x00007f26f8c76b80"), 18, "0x00007e00f8c76b80");
  const auto job = read_dump(std::string(kFaulthandler) + other);
  ASSERT_EQ(job.observations.size(), 1U);
  EXPECT_EQ(model::ranks_seen(job), model::RankSet({0, 1}));
}

TEST(Faulthandler, AFatalErrorIsTheEndOfTheProcess) {
  const auto job = read_dump(
      "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f26f8c76b80 (most recent "
      "call "
      "first):\n  File \"/app/train.py\", line 15 in <module>\n\nExtension modules: numpy\n",
      "rank_1.err");
  ASSERT_TRUE(only(job).exit);
  EXPECT_EQ(only(job).exit->signal, 11);
}

TEST(Faulthandler, ACrashReportWithoutRankIsThatOfTheRankThatEndedSo) {
  const std::string report =
      "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f1e (most recent call "
      "first):\n  File \"/srv/ops.py\", line 77 in step\n  File \"/srv/train.py\", line 9 in "
      "<module>\n\n";
  const auto table = [](std::string_view code) {
    return fmt::format(
        "Root Cause (first observed failure):\n[0]:\n  rank      : 2 (local_rank: 2)\n"
        "  exitcode  : {} (pid: 4242)\n=====\n",
        code);
  };
  const auto job = read_dump(report + table("-11"));
  const model::Process* crashed = model::rank_process(job, 2);
  ASSERT_NE(crashed, nullptr);
  ASSERT_FALSE(crashed->threads.empty());
  EXPECT_EQ(crashed->threads.front().state, 'X');
  EXPECT_EQ(crashed->threads.front().frames.front().line, 77);
  EXPECT_TRUE(model::rank_process(read_dump(report + table("-9")), 2)->threads.empty());
}

}  // namespace
}  // namespace ddpdoctor::imports
