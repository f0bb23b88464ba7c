// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "wrong-device";

JobBuilder context(JobBuilder told, model::Rank rank, std::int64_t device) {
  return told.fact("cuda-context", {{"device", device}}, rank, pid_of(rank));
}

TEST(WrongDevice, NamesTheRanksThatShareAGpu) {
  const auto findings = asked(
      kKind,
      context(context(context(job().ranks(2).stack(kAll, kInBarrier), 0, 0), 1, 0), 1, 1).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
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

}  // namespace
}  // namespace ddpdoctor::detectors
