// SPDX-License-Identifier: Apache-2.0
// Labels in front of nearly every line of a text.
#include "collector/imports/logs/labels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/imports/logs/tee_labels.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/logs/traceback_ranks.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kDump =
    "Thread 0x00007f26f71336c0 (most recent call first):\n"
    "  File \"/app/data.py\", line 327 in wait\n"
    "\n"
    "Thread 0x00007f26f8c76b80 (most recent call first):\n"
    "  File \"/app/train.py\", line 15 in <module>\n";

std::string before_each(std::string_view tag, std::string_view text = kDump) {
  std::string out;
  text.remove_suffix(1);
  for (const std::string_view line : base::split(text, '\n')) {
    out += fmt::format("{}{}\n", tag, line);
  }
  return out;
}

constexpr std::string_view kTags[][2] = {
    {"trainer-0  | ", "trainer-10 | "},
    {"train-worker-0 pytorch ", "train-worker-10 pytorch "},
    {"Nov 22 19:15:00 node0 python[91]: ", "Nov 22 19:15:01 node0 python[134]: "}};

TEST(Labels, WordsOfSrunItselfHaveNoLabel) {
  const std::string text = "3: Traceback (most recent call last):\n0: waiting\n";
  const Labels labels = with_ranks_named(
      text + "srun: error: n1: task 3: Exited with exit code 1\nslurmstepd: error: cancelled\n");
  EXPECT_NE(labels.text.find("[rank3]: Traceback"), labels.text.npos) << labels.text;
  EXPECT_NE(labels.text.find("\nsrun: error"), labels.text.npos) << labels.text;
  EXPECT_TRUE(with_ranks_named(text + "a\nb\n").text.empty());
}

TEST(Labels, ContainersAndProcessesStandForRanks) {
  for (const auto& [first, second] : kTags) {
    const Labels labels = with_ranks_named(before_each(second) + before_each(first));
    EXPECT_EQ(labels.text, before_each("[rank1]: ") + before_each("[rank0]: ") + "\n") << first;
    EXPECT_NE(labels.warning.find("numbered"), labels.warning.npos);
    EXPECT_TRUE(is_faulthandler(before_each(first), "x")) << first;
  }
}

TEST(Labels, OneContainerIsNoRank) {
  for (const auto& [tag, other] : kTags) {
    const Labels labels = with_ranks_named(before_each(tag));
    EXPECT_EQ(labels.text, std::string(kDump) + "\n") << tag;
    EXPECT_TRUE(labels.warning.empty());
  }
}

TEST(Labels, WordsOfALogNameNobody) {
  std::string losses;
  std::string scores;
  for (int i = 0; i < 40; ++i) {
    losses += fmt::format("epoch-{} loss 0.{}\n", i, i);
    losses += "  saved\n";
    scores += fmt::format("gpu-{} busy 9{}%\n", i % 4, i % 7);
  }
  for (const std::string& log : {losses, scores, std::string("Nov 22 19:15:00\n"),
                                 std::string("Nov 22 19:15:00 node0 [x]: a\n"),
                                 std::string("a-1 \n"), std::string("a-1 |"), std::string("|")}) {
    EXPECT_EQ(with_ranks_named(log).text, "") << log;
  }
}

TEST(Labels, NamesOfServicesInAColumnAreTakenOff) {
  std::string text;
  for (const std::string_view line : base::split(kDump, '\n')) {
    text += fmt::format("trainer  | {}\nmonitor  | cpu 3 %\n", line);
  }
  const Labels labels = with_ranks_named(text + "trainer exited with code 137\n");
  EXPECT_NE(labels.text.find(kDump), labels.text.npos) << labels.text;
  EXPECT_EQ(labels.text.find("trainer  |"), labels.text.npos);
  EXPECT_NE(labels.text.find("trainer exited with code 137"), labels.text.npos);
}

TEST(Labels, ATableIsNoColumnOfServices) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("layer-{:02} | {}\n", i, i * 1024);
  }
  EXPECT_EQ(with_ranks_named(text).text.find("\n1024\n"), std::string::npos);
}

TEST(TeeLabels, TheDistanceToTheRankIsThatOfTheNode) {
  const auto out = with_tee_as_ranks(
      "[default4]:[rank12]: RuntimeError: no\n[default4]:  what():  no\n[default5]:ready\n");
  EXPECT_EQ(out, "[rank12]: RuntimeError: no\n[rank12]:   what():  no\n[rank13]: ready\n");
}

TEST(TeeLabels, OfTheFirstNodeOrOfSeveralNodesStay) {
  EXPECT_FALSE(with_tee_as_ranks("[default4]:[rank4]: a\n[default4]:b\n"));
  EXPECT_FALSE(with_tee_as_ranks("[default4]:[rank4]: a\n[default4]:[rank12]: b\n"));
  EXPECT_FALSE(with_tee_as_ranks("[default4]:a\n[default5]:b\n"));
}

TEST(TracebackRanks, AnExceptionThatNamesItsRankNamesItsLines) {
  constexpr std::string_view kRaised =
      "step 7\n"
      "Traceback (most recent call last):\n"
      "  File \"/app/train.py\", line 9, in <module>\n"
      "RuntimeError: NCCL communicator was aborted on rank 2. Original reason\n"
      "step 8\n";
  EXPECT_EQ(with_ranks_of_tracebacks(kRaised),
            "step 7\n"
            "[rank2]: Traceback (most recent call last):\n"
            "[rank2]:   File \"/app/train.py\", line 9, in <module>\n"
            "[rank2]: RuntimeError: NCCL communicator was aborted on rank 2. Original reason\n"
            "step 8\n");
}

TEST(TracebackRanks, ATracebackOfNoRankStays) {
  EXPECT_FALSE(with_ranks_of_tracebacks(
      "Traceback (most recent call last):\n  File \"/app/a.py\", line 9, in f\nValueError: no\n"));
}

TEST(Labels, AHostBehindATimeIsNoWordOfTheLog) {
  constexpr std::string_view kRaises =
      "{'loss': 0.9521}\nTraceback (most recent call last):\n  File \"/srv/train.py\", line 126, "
      "in train\n    save()\nFileNotFoundError: gone\n";
  const std::string time = "2023-12-17 18:08:51 ";
  const Labels labels = with_ranks_named(before_each(time + "10.0.1.12: ", kRaises));
  EXPECT_EQ(labels.text, before_each(time, kRaises) + "\n");
  const std::string_view calm = kRaises.substr(0, kRaises.find("Traceback"));
  EXPECT_TRUE(with_ranks_named(before_each(time + "step1: ", calm)).text.empty());
}

}  // namespace
}  // namespace ddpdoctor::imports
