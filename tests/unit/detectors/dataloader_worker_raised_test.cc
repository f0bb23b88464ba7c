// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "dataloader-worker-raised";

constexpr std::string_view kLog = R"log([rank1]: Traceback (most recent call last):
[rank1]:   File "/srv/train.py", line 40, in <module>
[rank1]: ValueError: Caught ValueError in DataLoader worker process 0.
[rank1]: Original Traceback (most recent call last):
[rank1]:   File "/opt/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop
[rank1]:   File "/srv/train.py", line 12, in __getitem__
[rank1]: ValueError: bad shard
)log";

TEST(DataloaderWorkerRaised, ReadsTheMessageTheRankAndTheLine) {
  const auto findings = asked(
      kKind, job().ranks(2).stack(0, kInBarrier).exited(1, 1).log({}, std::string(kLog)).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
  EXPECT_FALSE(findings[0].fix.empty());
}

TEST(DataloaderWorkerRaised, IsSilentOnOtherMessages) {
  EXPECT_TRUE(
      asked(kKind,
            job().ranks(2).stack(kAll, kInBarrier).log(1, "[rank1]: ValueError: other").build())
          .empty());
}

TEST(DataloaderWorkerRaised, OnlySuspectsAMessageThatTheJobSurvived) {
  EXPECT_TRUE(nothing_likely(asked(kKind, job()
                                              .ranks(2)
                                              .stack(kAll, kInBarrier)
                                              .log({}, std::string(kLog))
                                              .progress(model::Progress::kMoving)
                                              .build())));
}

TEST(DataloaderWorkerRaised, PointsAtWhoWaitsForTheBatchWhereTheMessageHasNoLine) {
  const auto findings = asked(
      kKind, job()
                 .ranks(2)
                 .stack(0, kInBarrier)
                 .stack(1,
                        "py:get@/usr/lib/python3.11/queue.py:180 | "
                        "py:_try_get_data@/v/torch/utils/data/dataloader.py:1310 | "
                        "py:preload@/srv/data.py:45 | py:main@/srv/train.py:20")
                 .log({},
                      "RuntimeError: could not unlink the shared memory file /torch_1_2_3 : No "
                      "such file or directory (2)\n")
                 .build());
  ASSERT_EQ(findings.size(), 1u);
  ASSERT_FALSE(findings[0].locations.empty());
  EXPECT_EQ(findings[0].locations[0].file, "/srv/data.py");
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1}));
  EXPECT_TRUE(findings[0].culprits.empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
