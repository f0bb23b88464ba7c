// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "dataloader-worker-killed";

JobBuilder story(int signal) {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .stack(1, kInBatchWait)
      .process({.role = model::Role::kDataLoaderWorker,
                .rank = 1,
                .pid = 777,
                .exit = model::Exit{.status = {}, .signal = signal}});
}

TEST(DataloaderWorkerKilled, NamesTheSignalAndTheRankThatWaits) {
  const auto findings = asked(kKind, story(9).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 20);
}

TEST(DataloaderWorkerKilled, TakesABusErrorForAFullShm) {
  EXPECT_NE(asked(kKind, story(7).build()).at(0).fix.find("/dev/shm"), std::string::npos);
}

TEST(DataloaderWorkerKilled, IsSilentOnWorkersThatDataLoaderEnds) {
  EXPECT_TRUE(asked(kKind, story(15).build()).empty());
}

TEST(DataloaderWorkerKilled, ReadsTheMessageInALog) {
  const auto findings = asked(
      kKind, job()
                 .ranks(2)
                 .log(1, "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.")
                 .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
}

TEST(DataloaderWorkerKilled, FindsTheLineInTheExceptionThatTheMessageFollows) {
  const auto findings = asked(
      kKind,
      job()
          .ranks(2)
          .log(1,
               "Traceback (most recent call last):\n"
               "  File \"/srv/train.py\", line 15, in train\n    for x in loader:\n"
               "ConnectionResetError: [Errno 104] Connection reset by peer\n\n"
               "During handling of the above exception, another exception occurred:\n\n"
               "Traceback (most recent call last):\n"
               "  File \"/v/site-packages/torch/utils/data/_utils/signal_handling.py\", line 73, "
               "in handler\n"
               "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.\n")
          .build());
  ASSERT_EQ(findings.size(), 1u);
  ASSERT_FALSE(findings[0].locations.empty());
  EXPECT_EQ(findings[0].locations[0].line, 15);
}

}  // namespace
}  // namespace ddpdoctor::detectors
