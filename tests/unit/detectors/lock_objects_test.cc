// SPDX-License-Identifier: Apache-2.0
// Python locks are identified by their objects, not by the names that functions use for them.
#include <algorithm>

#include "collector/model/observed_values.h"
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

const std::string kLock =
    "native:__futex_abstimed_wait_common64@libc.so.6 | "
    "native:PyThread_acquire_lock_timed@python3.11 | ";

/// The same two locks, with different names in each function.
constexpr std::string_view kOtherNames = R"(
def flush(self):
    with self.first_lock:
        prepare()
        with self.second_lock:
            pass

def train(state):
    with state.model_lock:
        prepare()
        with state.queue_lock:
            pass
)";

model::JobModel two_threads(std::string_view source, const std::string& main,
                            const std::string& other) {
  return job()
      .ranks(2)
      .source("/srv/train.py", source)
      .stack(kAll, kInBarrier)
      .stack(0, kLock + main)
      .thread(0, {.stack = kLock + other})
      .build();
}

model::JobModel other_names() {
  return two_threads(kOtherNames, "py:train@/srv/train.py:10", "py:flush@/srv/train.py:4");
}

void add_lock(model::JobModel& job, bool main, int line, const std::string& expression,
              std::int64_t lock) {
  const auto& processes = job.observations.back().processes;
  const auto process = std::find_if(processes.begin(), processes.end(),
                                    [](const auto& one) { return one.rank == 0; });
  const auto thread =
      std::find_if(process->threads.begin(), process->threads.end(),
                   [&](const auto& one) { return (one.tid == process->pid) == main; });
  job.facts.push_back({.rank = 0,
                       .pid = process->pid,
                       .kind = std::string(model::kLockFact),
                       .fields = {{"tid", std::int64_t{thread->tid}},
                                  {"file", std::string("/srv/train.py")},
                                  {"line", std::int64_t{line}},
                                  {"expression", expression},
                                  {"lock", lock}}});
}

TEST(LockObjects, OneLockUnderTwoNamesIsOneLock) {
  // By names alone, four locks: but no other thread holds any.
  EXPECT_TRUE(nothing_likely(asked(kKind, other_names())));
  model::JobModel job = other_names();
  add_lock(job, true, 10, "state.model_lock", 1);
  add_lock(job, true, 10, "state.queue_lock", 2);
  add_lock(job, false, 4, "self.first_lock", 2);
  add_lock(job, false, 4, "self.second_lock", 1);
  const auto findings = asked(kKind, job);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
}

TEST(LockObjects, TwoLocksUnderOneNameAreTwoLocks) {
  model::JobModel job = two_threads(kTwoOrders, "py:update_weights@/srv/train.py:10",
                                    "py:export_weights@/srv/train.py:4");
  add_lock(job, true, 10, "model_lock", 1);
  add_lock(job, true, 10, "queue_lock", 2);
  add_lock(job, false, 4, "queue_lock", 3);
  add_lock(job, false, 4, "model_lock", 4);
  EXPECT_TRUE(asked(kKind, job).empty());
}

/// Two objects of one class around a lock: only the objects tell them apart.
constexpr std::string_view kWrapped = R"(
class Table:
    def __enter__(self):
        self.guard.acquire(); return self

def update(self):
    with self.weights:
        count(self)

def count(self):
    with self.counters as rows:
        rows.add(1)

def flush(service):
    with service.counters:
        digest(service)

def digest(service):
    with service.weights:
        pass
)";

TEST(LockObjects, AContextAroundALockIsThatLock) {
  const std::string enter = "py:Table.__enter__@/srv/train.py:3 | ";
  model::JobModel job =
      two_threads(kWrapped, enter + "py:count@/srv/train.py:10 | py:update@/srv/train.py:7",
                  enter + "py:digest@/srv/train.py:18 | py:flush@/srv/train.py:15");
  EXPECT_TRUE(nothing_likely(asked(kKind, job)));
  add_lock(job, true, 3, "self.guard", 2);
  add_lock(job, true, 10, "self.counters", 2);
  add_lock(job, true, 7, "self.weights", 1);
  add_lock(job, false, 3, "self.guard", 1);
  add_lock(job, false, 18, "service.weights", 1);
  add_lock(job, false, 15, "service.counters", 2);
  const auto findings = asked(kKind, job);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 10);
  EXPECT_EQ(findings[0].locations.at(1).line, 18);
  EXPECT_NE(findings[0].evidence.at(0).text.find("wants self.counters and holds self.weights"),
            std::string::npos)
      << findings[0].evidence.at(0).text;
}

/// One `with` for both locks: the lines do not say which of them a thread waits for.
constexpr std::string_view kOneWith = R"(
def export_weights():
    with queue_lock, model_lock:
        pass

async def update_weights():
    prepare()
    async with gate:
        with (model_lock,
              queue_lock):
            pass
)";

TEST(LockObjects, OfOneWithTheThreadHasTheLocksThatNoOtherCanHave) {
  const model::JobModel job = two_threads(kOneWith, "py:update_weights@/srv/train.py:8",
                                          "py:export_weights@/srv/train.py:2");
  const auto findings = asked(kKind, job);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].evidence.at(0).text.find("wants queue_lock and holds model_lock"),
            std::string::npos)
      << findings[0].evidence.at(0).text;
}

TEST(LockObjects, AThreadWaitsForTheFirstLockThatAnotherHas) {
  // The main thread holds model_lock and waits for a lock of its own: nothing is crossed.
  const model::JobModel job = two_threads(
      "def export():\n    with model_lock, queue_lock:\n        pass\n\ndef update():\n"
      "    with model_lock:\n        with other_lock:\n            pass\n",
      "py:update@/srv/train.py:7", "py:export@/srv/train.py:2");
  EXPECT_TRUE(asked(kKind, job).empty());
}

TEST(LockObjects, AnRLockIsOwnedByTheThreadThatMemoryShows) {
  // The source alone says: each thread has entered the lock that the other one wants.
  const auto with_owners = [](bool crossed) {
    model::JobModel job = two_threads(kTwoOrders, "py:update_weights@/srv/train.py:10",
                                      "py:export_weights@/srv/train.py:4");
    add_lock(job, true, 10, "model_lock", 1);
    add_lock(job, true, 10, "queue_lock", 2);
    add_lock(job, false, 4, "queue_lock", 2);
    add_lock(job, false, 4, "model_lock", 1);
    const auto tid_of = [&job](std::size_t fact) { return *job.facts[fact].number("tid"); };
    const std::size_t first = job.facts.size() - 4;
    const auto main = static_cast<std::int64_t>(tid_of(first));
    const auto other = static_cast<std::int64_t>(tid_of(first + 2));
    for (std::size_t i = first; i < job.facts.size(); ++i) {
      const bool model_lock = *job.facts[i].number("lock") == 1;
      job.facts[i].fields["owner"] = !crossed ? std::int64_t{0} : model_lock ? main : other;
    }
    return job;
  };
  EXPECT_EQ(asked(kKind, with_owners(true)).size(), 1u);
  EXPECT_TRUE(asked(kKind, with_owners(false)).empty());
}

/// Each lock is taken in a context of the user's, so that both threads wait at one line.
constexpr std::string_view kInContexts = R"(
class Shelf:
    @contextlib.contextmanager
    def opened(self):
        with self.mutex:
            yield self.books

def lend(library):
    with library.novels.opened():
        with library.atlases.opened():
            pass

def inspect(library):
    with library.atlases.opened():
        with library.novels.opened():
            pass

def count(library):
    with torch.no_grad():
        with library.novels.opened():
            pass
)";

Findings shelved(const std::string& other) {
  const std::string at_mutex = "py:Shelf.opened@/srv/train.py:4 | ";
  return asked(kKind,
               two_threads(kInContexts, at_mutex + "py:lend@/srv/train.py:9", at_mutex + other));
}

TEST(LockObjects, OnlyTwoThreadsHoldLocksAndBothWaitForOne) {
  const auto findings = shelved("py:inspect@/srv/train.py:14");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_EQ(findings[0].locations.at(1).line, 14);
  EXPECT_TRUE(shelved("py:count@/srv/train.py:19").empty()) << "it holds no lock";
}

}  // namespace
}  // namespace ddpdoctor::detectors
