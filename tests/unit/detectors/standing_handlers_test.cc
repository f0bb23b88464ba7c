// SPDX-License-Identifier: Apache-2.0
// Ranks that stay in an `except` block, as reported by rank-raised.
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

/// Rank 1 sleeps between two attempts; nothing has moved for this long.
Findings retrying(double still_for) {
  return asked(
      "rank-raised",
      job()
          .ranks(2)
          .seconds_without_progress(still_for)
          .source(
              "/srv/train.py",
              "def fetch():\n    for attempt in range(tries):\n        try:\n            get()\n"
              "        except OSError:\n            time.sleep(32)\n")
          .stack(kAll, kInBarrier)
          .stack(1, "native:clock_nanosleep@libc.so.6 | py:fetch@/srv/train.py:6")
          .waits(1, {.kind = "timer", .target = {}, .detail = {}, .limit = 30.0})
          .build());
}

TEST(StandingHandlers, WhoTriesAgainIsLikelyAfterAMinuteAndNotBefore) {
  EXPECT_TRUE(nothing_likely(retrying(40)));
  const Findings findings = retrying(75);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0}));
}

}  // namespace
}  // namespace ddpdoctor::detectors
