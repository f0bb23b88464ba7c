// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "rendezvous-incomplete";

const std::string kInInit =
    "native:recv@libc.so.6 | native:c10d::TCPStore::waitForWorkers@libtorch_cpu.so | "
    "py:_create_c10d_store@/opt/site-packages/torch/distributed/rendezvous.py:200 | "
    "py:init_process_group@/opt/site-packages/torch/distributed/distributed_c10d.py:1700 | "
    "py:main@/srv/train.py:9";

TEST(RendezvousIncomplete, NamesTheRanksThatWereNotStarted) {
  const auto findings = asked(kKind, job().ranks(4).stack(kAll, kInInit).absent(3).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({3}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1, 2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

TEST(RendezvousIncomplete, OnlySuspectsWhileTheScriptAroundItPauses) {
  JobBuilder builder = job().ranks(4).stack(kAll, kInInit).absent(3);
  builder.process({.pid = 800,
                   .threads = {{.stack = "native:clock_nanosleep@libc.so.6",
                                .waits_on = model::WaitsOn{
                                    .kind = "timer", .target = {}, .detail = {}, .limit = 9}}}});
  EXPECT_TRUE(nothing_likely(asked(kKind, builder.build())));
}

TEST(RendezvousIncomplete, OnlySuspectsRanksThatMayRunOnAnotherNode) {
  const auto told = job()
                        .ranks(4)
                        .stack(kAll, kInInit)
                        .environment({0, 1}, "LOCAL_WORLD_SIZE", "2")
                        .absent({2, 3})
                        .build();
  EXPECT_TRUE(nothing_likely(asked(kKind, told)));
}

TEST(RendezvousIncomplete, LeavesRanksThatCountDifferentlyToTheirEnvironment) {
  const auto told = job()
                        .ranks(4)
                        .stack(kAll, kInInit)
                        .environment({0, 1}, "WORLD_SIZE", "4")
                        .environment(2, "WORLD_SIZE", "3")
                        .absent(3)
                        .build();
  EXPECT_TRUE(asked(kKind, told).empty());
  const auto differs = asked("environment-differs", told);
  ASSERT_EQ(differs.size(), 1u);
  EXPECT_EQ(differs[0].culprits, model::RankSet({2}));
}

TEST(RendezvousIncomplete, WhoeverDidNotWriteThatItGaveUpNeverCame) {
  const std::string text =
      "RuntimeError: ../x.cpp Timed out after 1801 seconds waiting for clients. 2/3 clients "
      "joined.\n";
  const auto findings = asked("rendezvous-incomplete", job().log(0, text).log(2, text).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 2}));
  EXPECT_TRUE(
      asked("rendezvous-incomplete", job().log(0, "3/3 clients joined.\n").build()).empty());
}

TEST(RendezvousIncomplete, IsSilentWhenEveryoneIsThere) {
  EXPECT_TRUE(asked(kKind, job().ranks(4).stack(kAll, kInInit).build()).empty());
}

TEST(RendezvousIncomplete, IsSilentWhenOthersAreInACollective) {
  EXPECT_TRUE(
      asked(kKind, job().ranks(4).stack(kAll, kInInit).stack(0, kInBarrier).absent(3).build())
          .empty());
}

TEST(RendezvousIncomplete, IsSilentOnUnobservedRanks) {
  EXPECT_TRUE(
      nothing_likely(asked(kKind, job().ranks(4).stack(kAll, kInInit).unobserved(3).build())));
}

}  // namespace
}  // namespace ddpdoctor::detectors
