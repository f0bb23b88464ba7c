// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/exception_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "spawn-unpicklable";
constexpr std::string_view kMessage =
    R"log(AttributeError: Can't pickle local object 'main.<locals>.run')log";

TEST(SpawnUnpicklable, ReadsTheMessageTheRankAndTheLine) {
  expect_rank_and_line(kKind, kMessage, "/usr/lib/python3.11/multiprocessing/reduction.py");
}

TEST(SpawnUnpicklable, IsSilentOnOtherMessages) {
  expect_silence_on_other_messages(kKind);
}

TEST(SpawnUnpicklable, OnlySuspectsAMessageThatTheJobSurvived) {
  expect_doubt_when_survived(kKind, kMessage);
}

/// A program that started rank 0, failed to start rank 1, and joins what it has started.
model::JobModel failed_launcher(bool printed, const std::string& exception) {
  tests::JobBuilder builder = tests::job();
  builder.ranks(2).absent(1).stack(
      0,
      "native:poll@libc.so.6 | "
      "py:init_process_group@/opt/site-packages/torch/distributed/distributed_c10d.py:1700 | "
      "py:train@/srv/train.py:7");
  builder.process(
      {.role = model::Role::kLauncher,
       .pid = 900,
       .ppid = 1,
       .threads = {{.stack =
                        "native:wait4@libc.so.6 | "
                        "py:_exit_function@/usr/lib/python3.11/multiprocessing/util.py:357"}}});
  builder.fact("exception",
               {{"exception", exception},
                {"printed", printed},
                {"file", std::string("/srv/train.py")},
                {"line", std::int64_t{19}},
                {"function", std::string("main")}},
               {}, 900);
  return builder.build();
}

TEST(SpawnUnpicklable, IsWhatALauncherFailedWithBeforeAllRanksWereStarted) {
  const auto findings = asked(
      kKind,
      failed_launcher(
          true,
          "PicklingError: Can't pickle <function <lambda> at 0x7f>: attribute lookup failed"));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 19);
}

TEST(SpawnUnpicklable, IsNoneOfAnotherExceptionOrOneThatWasHandled) {
  EXPECT_TRUE(asked(kKind, failed_launcher(true, "ValueError: 3")).empty());
  EXPECT_TRUE(asked(kKind, failed_launcher(
                               false, "PicklingError: Can't pickle <function <lambda> at 0x7f>"))
                  .empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
