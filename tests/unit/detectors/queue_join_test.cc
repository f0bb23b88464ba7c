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

const std::string kLocked = "native:sem_wait@libc.so.6 | native:PyThread_acquire_lock_timed | ";

/// A thread that waits for the next item of the queue at this address.
std::string next_item(const std::string& queue, const std::string& timeout = "None") {
  return kLocked +
         "py:Condition.wait@/usr/lib/python3.12/threading.py:355 | py:Queue.get{self=" + queue +
         "; timeout=" + timeout +
         "}@/usr/lib/python3.12/queue.py:171 | py:Grader.serve@/srv/grade.py:4 | "
         "py:Thread.run@/usr/lib/python3.12/threading.py:1010";
}

/// Rank 1 joins the queue 0x7a in its main thread.
JobBuilder joined(const std::vector<std::string>& threads, const std::string& body) {
  JobBuilder builder = job();
  builder.ranks(2)
      .stack(0, kInBarrier)
      .stack(1, kLocked +
                    "py:Condition.wait@/usr/lib/python3.12/threading.py:355 | "
                    "py:Queue.join{self=<Queue at 0x7a>}@/usr/lib/python3.12/queue.py:90 | "
                    "py:Grader.settle@/srv/grade.py:20 | py:main@/srv/train.py:18")
      .source("/srv/grade.py",
              "class Grader:\n    def serve(self):\n        while True:\n"
              "            answer = self.inbox.get()\n" +
                  body);
  for (const std::string& stack : threads) {
    builder.thread(1, {.stack = stack});
  }
  return builder;
}

const std::string kSkips =
    "            if answer.old:\n                continue\n            self.grade(answer)\n"
    "            self.inbox.task_done()\n";

TEST(QueueJoin, AQueueWhoseReadersAllWaitIsNeverFinished) {
  const std::string idle = next_item("<Queue at 0x7a>");
  const auto findings = asked(kKind, joined({idle, idle}, kSkips).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  ASSERT_EQ(findings[0].locations.size(), 4u);
  EXPECT_EQ(findings[0].locations[0].line, 20);
  EXPECT_NE(findings[0].fix.find("grade.py:5"), std::string::npos) << findings[0].fix;
  EXPECT_TRUE(nothing_likely(asked(kKind, joined({idle}, kSkips).looked_once().build())));
}

TEST(QueueJoin, AReaderAtWorkMayStillMarkItsItem) {
  const std::string idle = next_item("<Queue at 0x7a>");
  const std::string works =
      "native:sgemm@libopenblas.so | py:Grader.grade@/srv/grade.py:30 | "
      "py:Grader.serve@/srv/grade.py:7 | py:Thread.run@/usr/lib/python3.12/threading.py:1010";
  EXPECT_TRUE(asked(kKind, joined({idle, works}, kSkips).build()).empty());
  EXPECT_TRUE(asked(kKind, joined({}, kSkips).build()).empty());
  EXPECT_TRUE(asked(kKind, joined({next_item("<Queue at 0x7b>")}, kSkips).build()).empty())
      << "a different queue";
  EXPECT_TRUE(asked(kKind, joined({next_item("<Queue at 0x7a>", "0.5")}, kSkips).build()).empty())
      << "the loop of the reader continues";
}

TEST(QueueJoin, AnItemThatAnotherProcessMayHaveIsNotLost) {
  JobBuilder builder = joined({next_item("<Queue at 0x7a>")},
                              "            self.pool.submit(answer, done=self.inbox.task_done)\n");
  EXPECT_EQ(asked(kKind, builder.build()).at(0).confidence, Confidence::kLikely);
  builder.process(
      {.rank = 1,
       .pid = 801,
       .threads = {{.stack = "native:sgemm@libopenblas.so | py:grade@/srv/pool.py:3"}}});
  EXPECT_TRUE(nothing_likely(asked(kKind, builder.build())));
}

}  // namespace
}  // namespace ddpdoctor::detectors
