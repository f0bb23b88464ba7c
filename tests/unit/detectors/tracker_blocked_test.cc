// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "tracker-blocked";
const std::string kInWandb =
    "native:recv@libc.so.6 | py:wait@/opt/site-packages/wandb/sdk/mailbox.py:120 | "
    "py:init@/opt/site-packages/wandb/sdk/wandb_init.py:1100 | py:setup@/srv/train.py:9";

TEST(TrackerBlocked, BlamesTheLineThatCallsTheTracker) {
  const auto findings =
      asked(kKind, job().ranks(2).stack(kAll, kInBarrier).stack(0, kInWandb).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

TEST(TrackerBlocked, KnowsThePackageInPathsThatAToolShortened) {
  const auto findings =
      asked(kKind, job()
                       .ranks(2)
                       .stack(kAll, kInBarrier)
                       .stack(0,
                              "native:recv@libc.so.6 | py:wait@wandb/sdk/mailbox.py:120 | "
                              "py:init@wandb/sdk/wandb_init.py:1100 | py:setup@train.py:9")
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
}

TEST(TrackerBlocked, OnlySuspectsItWhenNobodyWaits) {
  EXPECT_TRUE(nothing_likely(asked(kKind, job().ranks(1).stack(0, kInWandb).build())));
}

TEST(TrackerBlocked, IsSilentInAMovingJob) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(2)
                               .stack(kAll, kInBarrier)
                               .stack(0, kInWandb)
                               .progress(model::Progress::kMoving)
                               .build())
                  .empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
