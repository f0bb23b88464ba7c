// SPDX-License-Identifier: Apache-2.0
// lock-deadlock: one thread waits, inside a lock's block, for what another thread does with the
// lock.
#include "collector/detectors/evidence/wait_under_lock.h"

#include <fmt/format.h>

#include "collector/model/questions.h"
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "lock-deadlock";

constexpr std::string_view kReplay = R"(
class Replay:
    def add(self, item):
        with self.mutex:
            self.incoming.put(item)

    def index(self):
        while True:
            item = self.incoming.get()
            with self.mutex:
                self.store.append(item)

    def watch(self):
        while True:
            time.sleep(1)

    def drain(self):
        while True:
            self.store.append(self.incoming.get())
            self.report()

    def report(self):
        send_report()

    def compact(self):
        with self.mutex:
            rewrite()
)";

constexpr std::string_view kTake =
    "native:__futex_abstimed_wait_common64@libc.so.6 | "
    "native:PyThread_acquire_lock_timed@python3.11 | ";

std::string in_put() {
  return fmt::format(
      "{}py:Condition.wait@/usr/lib/python3.11/threading.py:327 | "
      "py:Queue.put@/usr/lib/python3.11/queue.py:140 | py:Replay.add@/srv/replay.py:4 | "
      "py:main@/srv/main.py:30",
      kTake);
}

const std::string kIndexer = fmt::format("{}py:Replay.index@/srv/replay.py:9", kTake);

JobBuilder full_queue() {
  return job()
      .ranks(2)
      .source("/srv/replay.py", kReplay)
      .stack(kAll, kInBarrier)
      .stack(0, in_put())
      .thread(0, {.stack = kIndexer});
}

TEST(WaitUnderLock, AFullQueueWhoseReaderWantsTheLockIsADeadlock) {
  const auto findings = asked(kKind, full_queue().build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  ASSERT_GE(findings[0].locations.size(), 2u);
  EXPECT_EQ(findings[0].locations[0].line, 4);
  EXPECT_EQ(findings[0].locations[1].line, 9);
  EXPECT_NE(findings[0].summary.find("Replay.mutex"), std::string::npos) << findings[0].summary;
}

/// A full queue under two names, and a dict of the reader with the name of the queue.
std::string replay_of(std::string_view reader) {
  return fmt::format(R"(
import queue, threading
mutex = threading.Lock()
class Replay:
    def __init__(self, box):
        self.incoming = box

    def add(self, item):
        with mutex:
            self.incoming.put(item)

class Reader:
    def __init__(self, box):
        self.incoming = {{}}
        self.todo = box

    def index(self):
        while True:
            item = self.{}
            with mutex:
                self.store.append(item)

shared = queue.Queue(4)
replay = Replay(shared)
reader = Reader(shared)
)",
                     reader);
}

std::optional<WaitUnderLock> between_two_classes(std::string_view reader) {
  const auto told =
      job()
          .ranks(2)
          .source("/srv/replay.py", replay_of(reader))
          .stack(kAll, kInBarrier)
          .stack(0, fmt::format("{}py:Condition.wait@/usr/lib/python3.11/threading.py:327 | "
                                "py:Queue.put@/usr/lib/python3.11/queue.py:140 | "
                                "py:Replay.add@/srv/replay.py:9",
                                kTake))
          .thread(0, {.stack = fmt::format("{}py:Reader.index@/srv/replay.py:19", kTake)})
          .build();
  const model::Process* process = model::rank_process(told, 0);
  auto found = wait_under_lock(told, *process);
  if (found) {
    found->holder = found->wanter = nullptr;  // they end with the job
  }
  return found;
}

TEST(WaitUnderLock, TheQueueIsTheSameUnderAnotherName) {
  const auto found = between_two_classes("todo.get()");
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->proven);
  EXPECT_EQ(found->awaited, "self.incoming.put");
}

TEST(WaitUnderLock, ADictWithTheNameOfTheQueueProvesNothing) {
  const auto found = between_two_classes("incoming.get(1)");
  EXPECT_TRUE(!found || !found->proven);
}

TEST(WaitUnderLock, AWaitWithALimitEndsByItself) {
  const model::WaitsOn limited{.kind = "semaphore", .target = {}, .detail = {}, .limit = 20};
  EXPECT_TRUE(asked(kKind, full_queue().waits(0, limited).build()).empty());
}

TEST(WaitUnderLock, AThirdThreadThatReadsTheQueueHelps) {
  EXPECT_TRUE(asked(kKind, full_queue()
                               .thread(0, {.stack = "py:send@/usr/lib/python3.11/socket.py:4 | "
                                                    "py:Replay.report@/srv/replay.py:22 | "
                                                    "py:Replay.drain@/srv/replay.py:19"})
                               .build())
                  .empty());
}

TEST(WaitUnderLock, AThirdThreadThatDoesOtherThingsDoesNotHelp) {
  const auto findings = asked(kKind, full_queue()
                                         .thread(0, {.stack = "native:clock_nanosleep | "
                                                              "py:Replay.watch@/srv/replay.py:14"})
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
}

TEST(WaitUnderLock, AnotherHolderOfThatNameMayHaveTheLock) {
  EXPECT_TRUE(asked(kKind, full_queue()
                               .thread(0, {.stack = "native:read | "
                                                    "py:Replay.compact@/srv/replay.py:26"})
                               .build())
                  .empty());
}

constexpr std::string_view kSignals = R"(
class Loader:
    def __init__(self):
        self.lock = threading.Lock()
        self.filled = threading.Condition(self.lock)
        self.ready = threading.Event()

    def take(self):
        with self.lock:
            self.filled.wait()

    def start(self):
        with self.lock:
            self.ready.wait()

    def fill(self):
        with self.lock:
            self.items.append(1)
        self.filled.notify()
        self.ready.set()

    def count(self):
        with self.lock:
            return len(self.items)
)";

model::JobModel signalled(int waits, std::string_view kind, const std::string& other) {
  const std::string inner =
      kind == "Event" ? "py:Event.wait@/usr/lib/python3.11/threading.py:622 | " : "";
  return job()
      .ranks(2)
      .source("/srv/loader.py", kSignals)
      .stack(kAll, kInBarrier)
      .stack(0, fmt::format("{}py:Condition.wait@/usr/lib/python3.11/threading.py:327 | {}"
                            "py:Loader.take@/srv/loader.py:{}",
                            kTake, inner, waits))
      .thread(0, {.stack = std::string(kTake) + other})
      .build();
}

TEST(WaitUnderLock, AnEventThatIsSetUnderTheLockIsADeadlock) {
  const auto findings = asked(kKind, signalled(13, "Event", "py:Loader.fill@/srv/loader.py:16"));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
}

TEST(WaitUnderLock, ConditionsGiveTheirLockBackWhileTheyWait) {
  EXPECT_TRUE(asked(kKind, signalled(9, "Condition", "py:Loader.fill@/srv/loader.py:16")).empty());
}

TEST(WaitUnderLock, WhenNobodyElseIsAwakeTheOnlyOtherThreadIsAwaited) {
  const auto findings = asked(kKind, signalled(13, "Event", "py:Loader.count@/srv/loader.py:22"));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(WaitUnderLock, ALockOfWorkersIsNothingToATrainingThatGoesOnElsewhere) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(2)
                               .source("/srv/replay.py", kReplay)
                               .stack(kAll, kInBarrier)
                               .thread(0, {.stack = in_put()})
                               .thread(0, {.stack = kIndexer})
                               .build())
                  .empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
