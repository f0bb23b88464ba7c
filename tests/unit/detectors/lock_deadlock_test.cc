// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "lock-deadlock";

constexpr std::string_view kTwoOrders = R"(
def export_weights():
    with queue_lock:
        prepare()
        with model_lock:
            pass

def update_weights():
    with model_lock:
        prepare()
        with queue_lock:
            pass
)";

constexpr std::string_view kOneOrder = R"(
def export_weights():
    with model_lock:
        prepare()
        with queue_lock:
            pass

def update_weights():
    with other_lock:
        prepare()
        with model_lock:
            pass
)";

const std::string kLock =
    "native:__futex_abstimed_wait_common64@libc.so.6 | "
    "native:PyThread_acquire_lock_timed@python3.11 | ";

JobBuilder story(std::string_view source) {
  return job()
      .ranks(2)
      .source("/srv/train.py", source)
      .stack(kAll, kInBarrier)
      .stack(0, kLock + "py:update_weights@/srv/train.py:10")
      .thread(0, {.stack = kLock + "py:export_weights@/srv/train.py:4"});
}

/// Each class has a `self.lock`.
constexpr std::string_view kTwoClasses = R"(
class Buffer:
    def size(self):
        with self.lock:
            return 1

    def add(self, stats):
        with self.lock:
            stats.on_add()

class Stats:
    def on_add(self):
        with self.lock:
            pass

    def snapshot(self):
        with self.lock:
            return self.buffer.size()
)";

TEST(LockDeadlock, LocksOfOneSpellingInTwoClassesAreTwoLocks) {
  const auto findings =
      asked(kKind, job()
                       .ranks(2)
                       .source("/srv/train.py", kTwoClasses)
                       .stack(kAll, kInBarrier)
                       .stack(0, kLock + "py:Buffer.size@/srv/train.py:3 | "
                                         "py:Stats.snapshot@/srv/train.py:17")
                       .thread(0, {.stack = kLock + "py:Stats.on_add@/srv/train.py:12 | "
                                                    "py:Buffer.add@/srv/train.py:8"})
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  ASSERT_EQ(findings[0].locations.size(), 3u);  // both threads, and the waiting rank
  EXPECT_EQ(findings[0].locations[1].line, 12);
  EXPECT_EQ(findings[0].fix.find("RLock"), std::string::npos) << findings[0].fix;
}

constexpr std::string_view kMeter = R"(
class Meter:
    def start(self):
        signal.signal(signal.SIGALRM, self._tick)

    def add(self, value):
        with self.lock:
            self.values.append(value)

    def _tick(self, number, frame):
        with self.lock:
            self.report()

    def report(self):
        with self.lock:
            return sum(self.values)
)";

TEST(LockDeadlock, ASignalHandlerIsCalledByNobody) {
  const std::string tick = "py:Meter._tick@/srv/train.py:10 | ";
  for (const std::string& handlers : {tick, tick + tick}) {  // the timer fires again in the handler
    const auto findings =
        asked(kKind, job()
                         .ranks(2)
                         .source("/srv/train.py", kMeter)
                         .stack(kAll, kInBarrier)
                         .stack(0, kLock + handlers + "py:Meter.add@/srv/train.py:7")
                         .build());
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_TRUE(findings[0].summary.starts_with("a signal handler of rank 0 waits (train.py:10"))
        << findings[0].summary;
    EXPECT_EQ(findings[0].locations.at(1).line, 7);
    EXPECT_NE(findings[0].fix.find("only a flag"), std::string::npos);
  }
}

TEST(LockDeadlock, AFinalizerTakesTheLockOfTheTracker) {
  const std::string tracker = "@/build/Lib/multiprocessing/resource_tracker.py:";
  const std::string inner = "py:ensure_running" + tracker + "83 | ";
  const std::string outer = "py:ensure_running" + tracker + "86 | py:main@/srv/train.py:4";
  const std::string finalizer = "py:__call__@/build/Lib/multiprocessing/util.py:224 | ";
  const auto told = [&](const std::string& between) {
    return asked(kKind, job().ranks(1).stack(0, inner + between + outer).build());
  };
  const auto findings = told(finalizer + "py:_check_alive" + tracker + "142 | ");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].summary.starts_with("a finalizer of rank 0 waits in ensure_running()"))
      << findings[0].summary;
  EXPECT_EQ(findings[0].fix.find("handler"), std::string::npos) << findings[0].fix;
  EXPECT_TRUE(told("py:_check_alive" + tracker + "142 | ").empty());
}

TEST(LockDeadlock, AFunctionThatIsCalledIsNoSignalHandler) {
  const auto findings = asked(kKind, job()
                                         .ranks(2)
                                         .source("/srv/train.py", kMeter)
                                         .stack(kAll, kInBarrier)
                                         .stack(0, kLock + "py:Meter.report@/srv/train.py:14 | "
                                                           "py:Meter._tick@/srv/train.py:11")
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].fix.find("RLock, or"), std::string::npos) << findings[0].fix;
}

/// Rank 0 waits for a lock that another of its threads holds, at this line of the source.
model::JobModel wants_a_held_lock(std::optional<double> limit) {
  constexpr std::string_view kHeld = R"(
class Index:
    def compact(self):
        with self.lock:
            for part in parts:
                time.sleep(1)

    def find(self):
        with self.lock:
            return 1
)";
  return job()
      .ranks(2)
      .source("/srv/train.py", kHeld)
      .stack(kAll, kInBarrier)
      .stack(0, kLock + "py:Index.find@/srv/train.py:8 | py:main@/srv/main.py:30")
      .thread(0, {.stack = "native:clock_nanosleep | py:Index.compact@/srv/train.py:5",
                  .waits_on =
                      model::WaitsOn{.kind = "timer", .target = {}, .detail = {}, .limit = limit}})
      .build();
}

TEST(LockDeadlock, ALockWhoseHolderGetsOnIsNoRankMissing) {
  const auto findings = asked("missing-rank", wants_a_held_lock(0.6));
  EXPECT_TRUE(findings.empty()) << findings[0].summary;
}

TEST(LockDeadlock, TheHolderOfALockIsNamedWhereTheRankIsMissing) {
  const auto findings = asked("missing-rank", wants_a_held_lock(86400));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.back().line, 5);
  EXPECT_NE(findings[0].locations.back().note.find("holds the lock"), std::string::npos);
}

TEST(LockDeadlock, TheLockOfAnotherClassIsNoneThatTheThreadHolds) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(2)
                               .source("/srv/train.py", kTwoClasses)
                               .stack(kAll, kInBarrier)
                               .stack(0, kLock + "py:Buffer.size@/srv/train.py:3 | "
                                                 "py:Stats.snapshot@/srv/train.py:17")
                               .build())
                  .empty());
}

TEST(LockDeadlock, FindsTwoPythonLocksTakenInOppositeOrder) {
  const auto findings = asked(kKind, story(kTwoOrders).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({1}));
  ASSERT_GE(findings[0].locations.size(), 2u);
  EXPECT_EQ(findings[0].locations[0].line, 10);
  EXPECT_EQ(findings[0].locations[1].line, 4);
}

TEST(LockDeadlock, IsSilentWhenTheOrderIsTheSame) {
  EXPECT_TRUE(asked(kKind, story(kOneOrder).build()).empty());
}

TEST(LockDeadlock, FindsALockTakenTwiceByOneThread) {
  const auto told =
      job()
          .ranks(2)
          .source("/srv/train.py",
                  "def outer():\n    with table_lock:\n        inner()\ndef inner():\n    "
                  "with table_lock:\n        pass\n")
          .stack(kAll, kInBarrier)
          .stack(1, kLock + "py:inner@/srv/train.py:5 | py:outer@/srv/train.py:3")
          .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
}

TEST(LockDeadlock, IsCertainOfACircleOfMutexOwners) {
  const auto told =
      job()
          .ranks(2)
          .stack(kAll, kInBarrier)
          .stack(0, "native:__lll_lock_wait@libc.so.6 | py:load@/srv/train.py:7")
          .waits(
              0,
              {.kind = "mutex", .target = "thread:" + std::to_string(tid_of(0, 1)), .detail = {}})
          .thread(0, {.stack = "native:__lll_lock_wait@libc.so.6 | py:save@/srv/train.py:17",
                      .waits_on = model::WaitsOn{.kind = "mutex",
                                                 .target = "thread:" + std::to_string(tid_of(0, 0)),
                                                 .detail = {}}})
          .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
}

TEST(LockDeadlock, DoesNotAccuseInAMovingJob) {
  EXPECT_TRUE(asked(kKind, story(kTwoOrders).progress(model::Progress::kMoving).build()).empty());
}

TEST(LockDeadlock, IsOnlyPossibleAfterOneLook) {
  EXPECT_TRUE(nothing_likely(asked(kKind, story(kTwoOrders).looked_once().build())));
}

TEST(LockDeadlock, APolledLockFileThatARankHoldsInACollectiveClosesTheCircle) {
  const auto findings = asked(
      kKind, job()
                 .ranks(2)
                 .stack(0, kInBarrier)
                 .all_reduce({0}, 1)
                 .stack(1,
                        "native:clock_nanosleep@libc.so.6 | "
                        "py:BaseFileLock.acquire@/opt/site-packages/filelock/_api.py:300 | "
                        "py:load@/srv/train.py:2")
                 .waits(1, {.kind = "lock-file", .target = {}, .detail = {}, .limit = {}})
                 .fact("lock-file",
                       {{"path", std::string("/cache/vocab.lock")},
                        {"exists", true},
                        {"held", true},
                        {"holder_pid", std::int64_t{pid_of(0)}},
                        {"waiting_pids", std::vector<std::string>{std::to_string(pid_of(1))}}})
                 .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
}

TEST(LockDeadlock, RanksThatWaitForOneHolderAreOneDeadlock) {
  const std::string polls =
      "native:clock_nanosleep@libc.so.6 | "
      "py:BaseFileLock.acquire@/opt/site-packages/filelock/_api.py:300 | py:load@/srv/train.py:2";
  const auto findings = asked(
      kKind,
      job()
          .ranks(3)
          .stack(0, kInBarrier)
          .all_reduce({0}, 1)
          .stack(1, polls)
          .stack(2, polls)
          .waits(1, {.kind = "lock-file", .target = {}, .detail = "/cache/v.lock", .limit = {}})
          .waits(2, {.kind = "lock-file", .target = {}, .detail = "/cache/v.lock", .limit = {}})
          .fact("lock-file",
                {{"path", std::string("/cache/v.lock")},
                 {"exists", true},
                 {"held", true},
                 {"holder_pid", std::int64_t{pid_of(0)}},
                 {"waiting_pids",
                  std::vector<std::string>{std::to_string(pid_of(1)), std::to_string(pid_of(2))}}})
          .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1, 2}));
  EXPECT_TRUE(findings[0].summary.starts_with("ranks 1 and 2 wait for a file lock (train.py:2"))
      << findings[0].summary;
  EXPECT_NE(findings[0].evidence.front().text.find("/cache/v.lock"), std::string::npos);
}

/// Rank 0 tries to lock a database that rank 1 has locked; rank 1 is in `holder`.
JobBuilder database(const std::string& holder) {
  JobBuilder builder = job();
  builder.ranks(2)
      .stack(0,
             "native:clock_nanosleep | native:sqlite3InvokeBusyHandler | native:sqlite3_step | "
             "py:transaction@/srv/trials.py:12 | py:main@/srv/train.py:31")
      .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = 0.1})
      .stack(1, holder)
      .fact("file-lock",
            {{"path", std::string("/srv/trials.db")},
             {"mode", std::string("write")},
             {"holder_pid", static_cast<std::int64_t>(pid_of(1))},
             {"holder_in_job", true}},
            1, pid_of(1));
  return builder;
}

TEST(LockDeadlock, SeesADatabaseThatIsLockedAcrossACollective) {
  const auto findings = asked("lock-deadlock", database(kInBarrier).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
  EXPECT_TRUE(
      asked("lock-deadlock", database("native:clock_nanosleep | py:record@/srv/train.py:9").build())
          .empty());
}

TEST(LockDeadlock, SeesRanksThatEachWaitForACallOfTheOther) {
  const std::string takes =
      "native:sem_wait | py:Condition.wait@/usr/lib/python3.11/threading.py:327 | "
      "py:Queue.get@/usr/lib/python3.11/queue.py:171 | ";
  const auto told = [&](const std::string& helper) {
    JobBuilder builder = job();
    builder.ranks(2)
        .stack(0, takes + "py:learner@/srv/agents.py:30")
        .stack(1, takes + "py:actor@/srv/agents.py:43")
        .thread(kAll, {.stack = "native:pthread_cond_timedwait | "
                                "native:torch::distributed::rpc::RpcAgent::retryExpiredRpc"});
    if (!helper.empty()) {
      builder.thread(1, {.stack = helper});
    }
    return asked("lock-deadlock", builder.build());
  };
  const auto findings = told({});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
  EXPECT_TRUE(told("native:recv | py:listen@/srv/agents.py:9").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
