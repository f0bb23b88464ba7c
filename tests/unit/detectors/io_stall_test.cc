// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "io-stall";
const std::string kOpens =
    "native:__open64@libc.so.6 | py:read_manifest@/srv/data.py:9 | py:main@/srv/train.py:20";

JobBuilder story() {
  return job().ranks(3).stack(kAll, kInBarrier).stack(0, kOpens);
}

TEST(IoStall, NamesThePipeAndTheLineThatOpensIt) {
  const auto findings = asked(
      kKind,
      story().waits(0, {.kind = "fifo", .target = "file:/data/manifest", .detail = {}}).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({1, 2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_EQ(std::get<std::string>(findings[0].details.at("path")), "/data/manifest");
}

TEST(IoStall, KnowsAServerThatDoesNotAnswer) {
  const auto findings = asked(
      kKind,
      story()
          .stack(0, "native:recv@libc.so.6 | py:ask@/srv/data.py:14 | py:main@/srv/train.py:20")
          .waits(0, {.kind = "socket", .target = "address:10.0.0.9:80", .detail = {}})
          .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].evidence.at(0).text.find("10.0.0.9:80"), std::string::npos);
}

TEST(IoStall, KnowsUninterruptibleSleepInBothObservations) {
  const auto findings = asked(kKind, story().state(0, 'D', "rpc_wait_bit_killable").build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
}

TEST(IoStall, IsSilentOnADiskThatWasSeenOnce) {
  auto told = story().state(0, 'D').build();
  told.observations.front().processes.at(1).threads.front().state = 'R';
  EXPECT_TRUE(asked(kKind, told).empty());
}

TEST(IoStall, IsSilentOnAPipeToAnotherProcessOfTheJob) {
  EXPECT_TRUE(asked(kKind, story()
                               .waits(0, {.kind = "pipe",
                                          .target = "pid:" + std::to_string(pid_of(1)),
                                          .detail = {}})
                               .build())
                  .empty());
}

TEST(IoStall, IsSilentOnTheSocketsOfACollective) {
  EXPECT_TRUE(
      asked(kKind, story()
                       .stack(0, kInBarrier)
                       .waits(0, {.kind = "socket", .target = "address:10.0.0.9:80", .detail = {}})
                       .build())
          .empty());
}

TEST(IoStall, IsOnlyPossibleAfterOneLook) {
  EXPECT_TRUE(nothing_likely(
      asked(kKind, story()
                       .waits(0, {.kind = "fifo", .target = "file:/data/manifest", .detail = {}})
                       .looked_once()
                       .build())));
}

}  // namespace
}  // namespace ddpdoctor::detectors
