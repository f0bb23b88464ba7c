// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "queue-join";

const std::string kJoins =
    "native:wait4@libc.so.6 | py:Popen.wait@/usr/lib/python3.11/multiprocessing/popen_fork.py:43 | "
    "py:BaseProcess.join@/usr/lib/python3.11/multiprocessing/process.py:149 | "
    "py:tokenize@/srv/train.py:12 | py:main@/srv/train.py:20";
const std::string kFinishes =
    "native:__futex_wait@libc.so.6 | "
    "py:Queue._finalize_join@/usr/lib/python3.11/multiprocessing/queues.py:199 | "
    "py:_run_finalizers@/usr/lib/python3.11/multiprocessing/util.py:300 | "
    "py:_exit_function@/usr/lib/python3.11/multiprocessing/util.py:360 | " +
    kForkedChild;
const std::string kFeeds =
    "native:write@libc.so.6 | "
    "py:Connection._send@/usr/lib/python3.11/multiprocessing/connection.py:384 | "
    "py:Queue._feed@/usr/lib/python3.11/multiprocessing/queues.py:244";
const std::string kFeederWaits =
    "native:__futex_wait@libc.so.6 | py:Condition.wait@/usr/lib/python3.11/threading.py:327 | "
    "py:Queue._feed@/usr/lib/python3.11/multiprocessing/queues.py:231";

JobBuilder story(const std::string& main, const std::string& feeder) {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .stack(0, kJoins)
      .process({.rank = 0, .pid = 701, .threads = {{.stack = main}, {.stack = feeder}}});
}

TEST(QueueJoin, BlamesTheLineThatJoins) {
  const auto findings = asked(kKind, story(kFinishes, kFeeds).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(QueueJoin, IsSilentOnAChildThatStillWorks) {
  EXPECT_TRUE(asked(kKind, story("native:sgemm@libopenblas.so | py:produce@/srv/train.py:5 | " +
                                     kForkedChild,
                                 kFeederWaits)
                               .build())
                  .empty());
}

TEST(QueueJoin, IsSilentInAMovingJob) {
  EXPECT_TRUE(
      asked(kKind, story(kFinishes, kFeeds).progress(model::Progress::kMoving).build()).empty());
}

TEST(QueueJoin, IsOnlyPossibleAfterOneLook) {
  EXPECT_TRUE(nothing_likely(asked(kKind, story(kFinishes, kFeeds).looked_once().build())));
}

TEST(QueueJoin, KnowsAFullPipeByItsWrite) {
  const auto findings =
      asked(kKind, story(kFinishes,
                         "native:write@libc.so.6 | "
                         "py:Queue._feed@/usr/lib/python3.11/multiprocessing/queues.py:244")
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(QueueJoin, OnlySuspectsAJoinWithATimeout) {
  model::JobModel told = story(kFinishes, kFeeds).build();
  EXPECT_FALSE(nothing_likely(asked("queue-join", told)));
  for (model::Observation& look : told.observations) {
    for (model::Process& process : look.processes) {
      if (process.rank) {
        process.threads.front().waits_on =
            model::WaitsOn{.kind = "process", .target = {}, .detail = {}, .limit = 1.0};
      }
    }
  }
  EXPECT_TRUE(nothing_likely(asked("queue-join", told)));
}

}  // namespace
}  // namespace ddpdoctor::detectors
