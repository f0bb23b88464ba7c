// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "wrong-device";

JobBuilder context(JobBuilder told, model::Rank rank, std::int64_t device) {
  return told.fact("cuda-context", {{"device", device}}, rank, pid_of(rank));
}

TEST(WrongDevice, NamesTheRankOnTheGpuOfAnother) {
  const auto findings = asked(
      kKind,
      context(context(context(job().ranks(2).stack(kAll, kInBarrier), 0, 0), 1, 0), 1, 1).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.at(0).line, 40);
}

TEST(WrongDevice, IsSilentWhenEachHasItsOwn) {
  EXPECT_TRUE(
      asked(kKind, context(context(job().ranks(2).stack(kAll, kInBarrier), 0, 0), 1, 1).build())
          .empty());
}

TEST(WrongDevice, OnlySuspectsAMachineWithOneGpu) {
  EXPECT_TRUE(nothing_likely(
      asked(kKind, context(context(job().ranks(2).stack(kAll, kInBarrier), 0, 0), 1, 0).build())));
}

TEST(WrongDevice, AddsWhatTheLogsSay) {
  const auto findings =
      asked(kKind,
            context(context(context(job().ranks(2).stack(kAll, kInBarrier), 0, 0), 1, 0), 1, 1)
                .log(1,
                     "Traceback (most recent call last):\n  File \"/srv/load.py\", line 9, in "
                     "load\ntorch.OutOfMemoryError: CUDA out of memory. GPU 0 has a total capacity")
                .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/load.py");
}

}  // namespace
}  // namespace ddpdoctor::detectors
