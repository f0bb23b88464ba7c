// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "collector/graph/working.h"
#include "collector/model/observed_objects.h"
#include "collector/model/questions.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using tests::job;

TEST(Moments, ATryToLockADatabaseIsNoPause) {
  const auto told = [](const std::string& below) {
    return job()
        .ranks(1)
        .source("/srv/trials.py", "def record(self):\n    self.db.execute(statement)\n")
        .stack(0, "native:clock_nanosleep | " + below + "py:record@/srv/trials.py:2")
        .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = 0.1})
        .build();
  };
  const auto for_a_moment = [](const model::JobModel& model) {
    return waits_for_a_moment(model, model::rank_process(model, 0)->threads.front());
  };
  EXPECT_TRUE(for_a_moment(told("")));
  EXPECT_FALSE(for_a_moment(told("native:sqlite3InvokeBusyHandler | native:sqlite3_step | ")));
}

/// Has slept for 0.3 s in a `while` with this condition.
bool for_a_moment(const std::string& condition, const std::string& more = {}) {
  const auto told =
      job()
          .ranks(1)
          .source("/srv/poll.py", "def poll(n):\n    while " + condition +
                                      ":\n        time.sleep(0.5)\n        n += 1\n" + more)
          .stack(0, "native:clock_nanosleep | py:poll@/srv/poll.py:3")
          .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = 0.3})
          .build();
  return waits_for_a_moment(told, model::rank_process(told, 0)->threads.front());
}

TEST(Moments, AWhileLoopThatCountsItsRoundsComesToItsEnd) {
  EXPECT_TRUE(for_a_moment("n < 44"));
  EXPECT_TRUE(for_a_moment("n < rounds"));
  EXPECT_FALSE(for_a_moment("n < 100000"));
  EXPECT_FALSE(for_a_moment("n < 44 and not ready"));
  EXPECT_FALSE(for_a_moment("m < 44"));
  EXPECT_FALSE(for_a_moment("n < 44", "        if ready():\n            break\n"));
}

TEST(Moments, AWhileLoopThatReadsOnComesToTheEndOfTheFile) {
  EXPECT_TRUE(for_a_moment("chunk := f.read(rate)"));
  EXPECT_TRUE(for_a_moment("(row := cursor.fetchone()) is not None"));
  EXPECT_TRUE(for_a_moment("(line := f.readline()) != ''"));
  EXPECT_FALSE(for_a_moment("not (text := f.read())"));
  EXPECT_FALSE(for_a_moment("(line := f.readline()) != 'ready'"));
  EXPECT_FALSE(for_a_moment("'ready' not in (text := f.read())"));
  EXPECT_FALSE(for_a_moment("f.read() != b''"));
}

/// Sleeps in a loop; `made` constructs what the condition asks.
bool pauses_in(const std::string& made, const std::string& condition) {
  const auto told =
      job()
          .ranks(1)
          .source("/srv/poll.py", "import collections, queue\ndef poll():\n    z = " + made +
                                      "\n    while " + condition + ":\n        time.sleep(0.5)\n")
          .stack(0, "native:clock_nanosleep | py:poll@/srv/poll.py:5")
          .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = 0.3})
          .build();
  return waits_for_a_moment(told, model::rank_process(told, 0)->threads.front());
}

TEST(Moments, OnlyWhatHoldsWorkGivesWork) {
  EXPECT_TRUE(pauses_in("queue.Queue()", "z.get(timeout=1) is not None"));
  EXPECT_TRUE(pauses_in("collections.deque(work)", "z.popleft() is not None"));
  EXPECT_TRUE(pauses_in("elsewhere()", "z.get(timeout=1) is not None"));
  EXPECT_FALSE(pauses_in("{}", "z.get('ready') is None"));
  EXPECT_FALSE(pauses_in("dict(state)", "not z.pop('ready', None)"));
}

TEST(Moments, WhatMemoryShowsOfAnObjectDecidesWhereTheSourceDoesNot) {
  const auto asleep = [](const std::string& made) {
    auto told = job()
                    .ranks(1)
                    .source("/srv/poll.py",
                            "def poll(box):\n    while box.get() is None:\n        time.sleep(1)\n")
                    .stack(0, "native:clock_nanosleep | py:poll@/srv/poll.py:3")
                    .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = 0.3})
                    .build();
    const model::Thread& thread = model::rank_process(told, 0)->threads.front();
    told.facts.push_back({.rank = 0,
                          .pid = model::rank_process(told, 0)->pid,
                          .kind = std::string(model::kObjectFact),
                          .fields = {{"tid", std::int64_t{thread.tid}},
                                     {"file", std::string("/srv/poll.py")},
                                     {"line", std::int64_t{2}},
                                     {"expression", std::string("box")},
                                     {"class", made},
                                     {"object", std::int64_t{1}}}});
    return waits_for_a_moment(told, thread);
  };
  EXPECT_TRUE(asleep("queue.Queue"));
  EXPECT_FALSE(asleep("builtins.dict"));
  EXPECT_TRUE(asleep("mine.Box"));
}

/// Asleep in a function that an except clause of a retry loop calls.
model::JobModel tries_again(double seconds) {
  return job()
      .ranks(1)
      .source("/srv/remote.py",
              "def pause(k):\n    time.sleep(2)\n\ndef load(path):\n    for k in range(200):\n"
              "        try:\n            return read(path)\n        except OSError:\n"
              "            pause(k)\n")
      .stack(0, "native:clock_nanosleep | py:pause@/srv/remote.py:2 | py:load@/srv/remote.py:9")
      .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = 1.5})
      .seconds_without_progress(seconds)
      .build();
}

TEST(Moments, WhatHasFailedForAMinuteIsNoPauseWhereverItSleeps) {
  const auto for_a_moment = [](const model::JobModel& told) {
    return waits_for_a_moment(told, model::rank_process(told, 0)->threads.front());
  };
  EXPECT_TRUE(for_a_moment(tries_again(20)));
  EXPECT_FALSE(for_a_moment(tries_again(61)));
}

}  // namespace
}  // namespace ddpdoctor::graph
