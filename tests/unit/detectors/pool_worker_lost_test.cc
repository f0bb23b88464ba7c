// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "pool-worker-lost";

const std::string kInMap =
    "native:__futex_abstimed_wait_common64@libc.so.6 | "
    "py:Condition.wait@/usr/lib/python3.11/threading.py:327 | "
    "py:ApplyResult.wait@/usr/lib/python3.11/multiprocessing/pool.py:768 | "
    "py:ApplyResult.get@/usr/lib/python3.11/multiprocessing/pool.py:771 | "
    "py:Pool.map@/usr/lib/python3.11/multiprocessing/pool.py:367 | py:preprocess@/srv/train.py:12 "
    "| py:main@/srv/train.py:20";
const std::string kIdle =
    "native:read@libc.so.6 | py:SimpleQueue.get@/usr/lib/python3.11/multiprocessing/queues.py:365 "
    "| "
    "py:worker@/usr/lib/python3.11/multiprocessing/pool.py:114 | " +
    kForkedChild;
const std::string kBusy =
    "native:read@libc.so.6 | py:tokenize@/srv/train.py:5 | "
    "py:worker@/usr/lib/python3.11/multiprocessing/pool.py:125 | " +
    kForkedChild;

JobBuilder story(const std::string& worker) {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .stack(0, kInMap)
      .process({.rank = 0, .pid = 701, .threads = {{.stack = kIdle}}})
      .process({.rank = 0, .pid = 702, .threads = {{.stack = worker}}});
}

model::JobModel with_replaced_worker(model::JobModel told) {
  for (model::Observation& observation : told.observations) {
    for (model::Process& process : observation.processes) {
      if (process.pid == 701 || process.pid == 702) {
        process.start_time = process.pid == 701 ? 100.0 : 107.0;
      }
    }
  }
  return told;
}

TEST(PoolWorkerLost, KnowsAReplacedWorkerWhenAllAreIdle) {
  const auto findings = asked(kKind, with_replaced_worker(story(kIdle).build()));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(PoolWorkerLost, KnowsTheWorkersOfAForkServer) {
  const std::string server =
      "native:epoll_wait@libc.so.6 | "
      "py:main@/usr/lib/python3.11/multiprocessing/forkserver.py:218";
  const auto told = [&](const std::string& worker) {
    return job()
        .ranks(2)
        .stack(kAll, kInBarrier)
        .stack(0, kInMap)
        .process({.rank = 0, .pid = 700, .threads = {{.stack = server}}})
        .process({.rank = 0, .pid = 701, .ppid = 700, .threads = {{.stack = kIdle}}})
        .process({.rank = 0, .pid = 702, .ppid = 700, .threads = {{.stack = worker}}});
  };
  const auto findings = asked(kKind, with_replaced_worker(told(kIdle).build()));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_TRUE(asked(kKind, with_replaced_worker(told(kBusy).build())).empty());
}

TEST(PoolWorkerLost, OnlySuspectsALossWhileTheReplacementStarts) {
  const auto told = [](const std::string& first) {
    const std::string starts =
        "native:_PyEval_EvalFrameDefault | py:<module>@/v/site-packages/torch/__init__.py:9 | "
        "py:_main@/usr/lib/python3.11/multiprocessing/spawn.py:131";
    JobBuilder builder = job().ranks(2).stack(kAll, kInBarrier).stack(0, kInMap);
    builder.process(
        {.rank = 0, .pid = 701, .threads = {{.stack = first.empty() ? starts : first}}});
    builder.process(
        {.rank = 0, .pid = 702, .state = 'R', .threads = {{.stack = starts, .state = 'R'}}});
    return with_replaced_worker(builder.build());
  };
  const auto findings = asked(kKind, told(kIdle));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_TRUE(asked(kKind, told(kBusy)).empty());
  EXPECT_TRUE(asked(kKind, told("")).empty());
}

TEST(PoolWorkerLost, IsSilentWhileAWorkerIsBusy) {
  EXPECT_TRUE(asked(kKind, with_replaced_worker(story(kBusy).build())).empty());
}

TEST(PoolWorkerLost, IsNotCertainOfIdleWorkersWithoutALoss) {
  const auto findings = asked(kKind, story(kIdle).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(PoolWorkerLost, KnowsTheEndOfAWorkerFromItsParentsRecord) {
  const auto findings =
      asked(kKind, story(kIdle)
                       .fact("exit",
                             {{"parent_pid", std::int64_t{pid_of(0)}}, {"status", std::int64_t{3}}},
                             0, 700)
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
}

TEST(PoolWorkerLost, IsSilentWhileTheIterableYieldsSlowly) {
  model::JobModel told = story(kIdle).build();
  for (model::Observation& observation : told.observations) {
    for (model::Process& process : observation.processes) {
      if (process.pid == pid_of(0)) {
        model::Thread hands_out = process.threads.front();
        hands_out.tid += 1;
        hands_out.frames.assign(2, {});
        for (model::Frame& frame : hands_out.frames) {
          frame.language = model::Language::kPython;
        }
        hands_out.frames[0].function = "read_lines";
        hands_out.frames[0].file = "/srv/train.py";
        hands_out.frames[0].line = 5;
        hands_out.frames[1].function = "Pool._handle_tasks";
        hands_out.frames[1].file = "/usr/lib/python3.11/multiprocessing/pool.py";
        process.threads.push_back(hands_out);
      }
    }
  }
  EXPECT_TRUE(asked(kKind, told).empty());
}

TEST(PoolWorkerLost, IsSilentWhenNobodyWaitsForThePool) {
  EXPECT_TRUE(
      asked(kKind, with_replaced_worker(story(kIdle).stack(0, kInBarrier).build())).empty());
}

/// Two workers of pebble, of which the second is in `innermost`.
Findings of_pebble(const std::string& innermost) {
  const std::string kPool = "/venv/lib/python3.11/site-packages/pebble/pool/";
  const std::string reads = "py:task_transaction@" + kPool + "process.py:446 | py:worker_process@" +
                            kPool + "process.py:416 | " + kForkedChild;
  const std::string waits = "py:unix_acquire@" + kPool + "channel.py:149 | py:__enter__@" + kPool +
                            "channel.py:113 | " + reads;
  const std::string result =
      "py:wait@/usr/lib/python3.11/threading.py:327 | "
      "py:result@/usr/lib/python3.11/concurrent/futures/_base.py:451 | py:run_batch@/srv/run.py:9";
  return asked(kKind,
               job()
                   .ranks(1)
                   .stack(0, result)
                   .process({.rank = 0, .pid = 701, .threads = {{.stack = waits}}})
                   .process({.rank = 0,
                             .pid = 702,
                             .threads = {{.stack = innermost.empty() ? waits : innermost + reads}}})
                   .build());
}

TEST(PoolWorkerLost, ALockThatAllWorkersWaitForIsOfALostOne) {
  const auto findings = of_pebble("");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_NE(findings[0].summary.find("none has it"), std::string::npos);
}

TEST(PoolWorkerLost, AWorkerThatReadsHasTheLock) {
  EXPECT_TRUE(
      of_pebble("py:unix_poll@/venv/lib/python3.11/site-packages/pebble/pool/channel.py:44 | ")
          .empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
