// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "import-lock";

const std::string kImportsAndJoins =
    "native:__futex_abstimed_wait_common64@libc.so.6 | "
    "py:Thread.join@/usr/lib/python3.11/threading.py:1119 | "
    "py:<module>@/srv/rules.py:6 | py:_call_with_frames_removed@<frozen importlib._bootstrap>:241 "
    "| "
    "py:_load_unlocked@<frozen importlib._bootstrap>:690 | py:_find_and_load@<frozen "
    "importlib._bootstrap>:1178 | py:load@/srv/train.py:12";
const std::string kWaitsForImport =
    "native:__futex_abstimed_wait_common64@libc.so.6 | py:_ModuleLock.acquire@<frozen "
    "importlib._bootstrap>:107 | "
    "py:_find_and_load@<frozen importlib._bootstrap>:1170 | py:load@/srv/rules.py:3";

TEST(ImportLock, BlamesTheLineInTheModuleThatWaits) {
  const auto findings = asked(kKind, job()
                                         .ranks(2)
                                         .stack(kAll, kInBarrier)
                                         .stack(1, kImportsAndJoins)
                                         .thread(1, {.stack = kWaitsForImport})
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/rules.py");
  EXPECT_EQ(findings[0].locations.at(0).line, 6);
}

TEST(ImportLock, OnlySuspectsAWaitWhoseHolderIsAtWork) {
  EXPECT_TRUE(nothing_likely(asked(kKind, job()
                                              .ranks(2)
                                              .stack(kAll, kInBarrier)
                                              .stack(1, kImportsAndJoins)
                                              .state(1, 'R')
                                              .thread(1, {.stack = kWaitsForImport})
                                              .build())));
}

TEST(ImportLock, IsSilentWhileTheModulesCodeGoesOn) {
  const std::string sleeps =
      "native:clock_nanosleep@libc.so.6 | native:time_sleep@libpython3.11.so | "
      "py:<module>@/srv/heavy.py:6 | py:_call_with_frames_removed@<frozen "
      "importlib._bootstrap>:241 | py:_load_unlocked@<frozen importlib._bootstrap>:690 | "
      "py:_find_and_load@<frozen importlib._bootstrap>:1178 | py:warm_up@/srv/train.py:12";
  JobBuilder builder = job().ranks(2).stack(kAll, kInBarrier).stack(1, kWaitsForImport);
  EXPECT_TRUE(asked(kKind, builder.thread(1, {.stack = sleeps}).build()).empty());
}

TEST(ImportLock, IsSilentOnALongImport) {
  EXPECT_TRUE(
      asked(kKind, job().ranks(2).stack(kAll, kInBarrier).stack(1, kImportsAndJoins).build())
          .empty());
}

TEST(ImportLock, IsSilentInAMovingJob) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(2)
                               .stack(kAll, kInBarrier)
                               .stack(1, kImportsAndJoins)
                               .thread(1, {.stack = kWaitsForImport})
                               .progress(model::Progress::kMoving)
                               .build())
                  .empty());
}

TEST(ImportLock, SeesTwoImportsThatWaitForEachOther) {
  const auto findings = asked(
      kKind,
      job()
          .ranks(1)
          .stack(0, kWaitsForImport)
          .waits(0, {.kind = "import-lock",
                     .target = "thread:" + std::to_string(tid_of(0, 1)),
                     .detail = {}})
          .thread(0, {.stack = kWaitsForImport,
                      .waits_on = model::WaitsOn{.kind = "import-lock",
                                                 .target = "thread:" + std::to_string(tid_of(0, 0)),
                                                 .detail = {}}})
          .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

}  // namespace
}  // namespace ddpdoctor::detectors
