// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "collector/graph/servers.h"
#include "collector/graph/standing.h"
#include "collector/model/questions.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using tests::job;
using tests::kAll;

constexpr std::string_view kFile = "/srv/train.py";

/// Rank 0 sleeps on this line of the file, and wakes in this many seconds.
model::JobModel sleeper(std::string_view text, int line, double seconds) {
  return job()
      .ranks(2)
      .stack(0, "native:clock_nanosleep | native:time_sleep | py:upload@/srv/train.py:" +
                    std::to_string(line))
      .stack(1,
             "native:c10d::Work::wait | py:barrier@/v/site-packages/torch/distributed/"
             "distributed_c10d.py:4830 | py:main@/srv/train.py:40")
      .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = seconds})
      .source(std::string(kFile), text)
      .build();
}

bool works(const model::JobModel& told) {
  return standings(told).at(0).on_cpu;
}

constexpr std::string_view kBounded = R"(def upload():
    for chunk in range(10):
        time.sleep(1)
)";

TEST(Working, AShortSleepInABoundedLoopIsWork) {
  EXPECT_TRUE(works(sleeper(kBounded, 3, 0.7)));
}

TEST(Working, ASleepLongerThanAnybodyWaitsIsNone) {
  EXPECT_FALSE(works(sleeper(kBounded, 3, 3599.2)));
}

TEST(Working, ASleepByItselfIsWorkWhileItIsShort) {
  constexpr std::string_view kAlone = "def upload():\n    time.sleep(10)\n";
  EXPECT_TRUE(works(sleeper(kAlone, 2, 4.0)));
  EXPECT_FALSE(works(sleeper(kAlone, 2, 86000.0)));
}

TEST(Working, ASleepInAWhileLoopWaitsForSomething) {
  EXPECT_FALSE(
      works(sleeper("def upload():\n    while not done():\n        time.sleep(1)\n", 3, 0.7)));
}

TEST(Working, AWhileLoopThatOnlyTheClockEndsIsWork) {
  EXPECT_TRUE(works(
      sleeper("def unpack():\n    while time.time() < end:\n        time.sleep(0.05)\n", 3, 0.03)));
  EXPECT_FALSE(works(sleeper(
      "def wait():\n    while time.time() < end:\n        time.sleep(1)\n        if ready():"
      "\n            break\n",
      3, 0.7)));
}

TEST(Working, AWhileLoopThatTakesWorkEndsWithIt) {
  EXPECT_TRUE(
      works(sleeper("def run(self):\n    while (item := self.q.get()) is not None:\n"
                    "        time.sleep(1.5)\n",
                    3, 0.7)));
}

TEST(Working, ALoopOverARangeWithoutEndWaitsToo) {
  for (const std::string rounds : {"100000", "10**9", "99999999999999999999999"}) {
    EXPECT_FALSE(works(sleeper(
        "def upload():\n    for _ in range(" + rounds + "):\n        time.sleep(1)\n", 3, 0.7)))
        << rounds;
  }
}

TEST(Working, ASleepOfOneRankIsAStepOfTheLoopOfAll) {
  EXPECT_TRUE(
      works(sleeper("def upload(rank):\n    while step < 100:\n        if rank == 0:\n"
                    "            time.sleep(8)\n        step += 1\n",
                    4, 7.0)));
}

TEST(Working, WithoutTheSourceTheLoopIsUnknownAndTheSleepNoWork) {
  EXPECT_FALSE(works(sleeper("", 3, 0.7)));
}

/// Rank 0 reads from a socket in both snapshots, and ran between them if `ran`.
model::JobModel reader(const std::string& peer, bool ran) {
  model::JobModel told = job()
                             .ranks(2)
                             .stack(kAll, "native:recv | py:fetch@/srv/train.py:3")
                             .waits(0, {.kind = "socket", .target = peer, .detail = {}})
                             .build();
  std::uint64_t count = 7;
  for (model::Observation& observation : told.observations) {
    for (model::Process& process : observation.processes) {
      for (model::Thread& thread : process.threads) {
        thread.run_count = count;
      }
    }
    count += ran ? 1 : 0;
  }
  return told;
}

TEST(Working, WhoGetsBytesFromOutsideIsServed) {
  EXPECT_TRUE(works(reader("address:192.0.2.1:80", true)));
  EXPECT_FALSE(works(reader("address:192.0.2.1:80", false)));
}

/// Rank 0 waits for the answer of a server, for at most `limit` seconds or forever.
model::JobModel asks(std::optional<double> limit) {
  return job()
      .ranks(2)
      .source(std::string(kFile), "def fetch():\n    return urlopen(url, timeout=30)\n")
      .stack(kAll,
             "native:poll | py:readinto@/usr/lib/python3.11/socket.py:718 | "
             "py:fetch@/srv/train.py:2")
      .waits(0, {.kind = "socket", .target = {}, .detail = {}, .limit = limit})
      .build();
}

TEST(Working, AConnectionWithATimeoutGivesUpByItself) {
  EXPECT_TRUE(works(asks(30.0)));
  EXPECT_FALSE(works(asks(3600.0)));
  EXPECT_FALSE(works(asks(std::nullopt)));
}

TEST(Working, AServersPauseAfterARequestIsWork) {
  EXPECT_TRUE(
      works(sleeper("def serve():\n    while True:\n        c, _ = server.accept()\n"
                    "        time.sleep(8)\n",
                    4, 5.0)));
}

/// Rank 0 polls a queue of its own, with a timeout or without; the frames between are Python's or
/// torch's.
model::JobModel asks_queue(std::optional<double> limit, const std::string& through) {
  return job()
      .ranks(2)
      .source(std::string(kFile), "def fetch():\n    return q.get(timeout=9)\n")
      .stack(kAll, "native:sem_clockwait | py:wait@/usr/lib/python3.11/threading.py:331 | " +
                       through +
                       "py:get@/usr/lib/python3.11/queue.py:180 | "
                       "py:fetch@/srv/train.py:2")
      .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = limit})
      .build();
}

TEST(Working, AQueueThatIsAskedWithATimeoutGivesUpByItself) {
  EXPECT_TRUE(works(asks_queue(9.0, "")));
  EXPECT_FALSE(works(asks_queue(std::nullopt, "")));
  EXPECT_FALSE(works(
      asks_queue(5.0, "py:_try_get_data@/v/site-packages/torch/utils/data/dataloader.py:1270 | ")));
}

/// Rank 0 waits for a future; one of its threads has this state letter in both snapshots.
model::JobModel with_thread(char letter, const std::string& stack) {
  return job()
      .ranks(2)
      .stack(kAll,
             "native:sem_wait | py:wait@/usr/lib/python3.11/threading.py:327 | "
             "py:result@/usr/lib/python3.11/concurrent/futures/_base.py:451 | "
             "py:main@/srv/train.py:9")
      .thread(0, {.stack = stack, .name = "pool_0", .state = letter})
      .build();
}

TEST(Working, AThreadThatWantsACpuInBothLooksWorksForTheOneThatWaits) {
  const std::string packs = "native:lzma_code | py:compress@/usr/lib/python3.11/lzma.py:120";
  EXPECT_TRUE(works(with_thread('R', packs)));
  EXPECT_FALSE(works(with_thread('S', packs)));
  EXPECT_FALSE(works(with_thread('R', "native:poll | native:ncclProxyProgress")));
}

TEST(Working, AModuleThatAnotherThreadImportsAndThatGoesOnIsWaitedFor) {
  const auto told = [](double seconds) {
    return job()
        .ranks(2)
        .stack(kAll,
               "native:sem_wait | py:acquire@<frozen importlib._bootstrap>:180 | "
               "py:main@/srv/train.py:21")
        .waits(0, {.kind = "import-lock", .target = {}, .detail = "import of heavy"})
        .source("/srv/heavy.py", "for i in range(24):\n    time.sleep(.5)\n")
        .thread(0,
                {.stack = "native:clock_nanosleep | py:<module>@/srv/heavy.py:2 | "
                          "py:_load_unlocked@<frozen importlib._bootstrap>:690 | "
                          "py:warm_up@/srv/train.py:8",
                 .waits_on =
                     model::WaitsOn{.kind = "timer", .target = {}, .detail = {}, .limit = seconds}})
        .build();
  };
  EXPECT_TRUE(works(told(0.4)));
  EXPECT_FALSE(works(told(86'400)));
}

TEST(Working, AThreadThatSignalsBetweenItsSleepsWorksForTheOneThatWaits) {
  const auto told = [](const std::string& after) {
    return job()
        .ranks(2)
        .stack(kAll,
               "native:sem_wait | py:wait@/usr/lib/python3.11/threading.py:327 | "
               "py:main@/srv/train.py:9")
        .source("/srv/tokens.py",
                "def renew(self):\n    while True:\n        time.sleep(8)\n        " + after + "\n")
        .thread(0, {.stack = "native:clock_nanosleep | py:renew@/srv/tokens.py:3",
                    .waits_on =
                        model::WaitsOn{.kind = "timer", .target = {}, .detail = {}, .limit = 1.4}})
        .build();
  };
  EXPECT_TRUE(works(told("self.cond.notify_all()")));
  EXPECT_TRUE(works(told("tasks.task_done()")));
  EXPECT_FALSE(works(told("log(time.time())")));
  EXPECT_FALSE(works(told("if healthy and connection.recv(10): answer()")));
}

TEST(Working, AThreadWhoseLoopEndsSignalsBehindIt) {
  const auto told = [](const std::string& condition) {
    return job()
        .ranks(2)
        .stack(kAll,
               "native:sem_wait | py:wait@/usr/lib/python3.11/threading.py:327 | "
               "py:main@/srv/train.py:9")
        .source("/srv/cooldown.py", "def tick(self):\n    while " + condition +
                                        ":\n        time.sleep(1.5)\n        self.n -= 1\n"
                                        "    self.over.set()\n")
        .thread(0, {.stack = "native:clock_nanosleep | py:tick@/srv/cooldown.py:3",
                    .waits_on =
                        model::WaitsOn{.kind = "timer", .target = {}, .detail = {}, .limit = 1.4}})
        .build();
  };
  EXPECT_TRUE(works(told("self.n")));
  EXPECT_FALSE(works(told("True")));
}

TEST(Working, AnOutsiderIsNeitherRankNorBelowOne) {
  const model::WaitsOn timer{.kind = "timer", .target = {}, .detail = {}, .limit = 9};
  const auto told = [&timer](pid_t parent) {
    return job()
        .ranks(2)
        .process({.pid = 800,
                  .ppid = parent,
                  .threads = {{.stack = "native:clock_nanosleep", .waits_on = timer}}})
        .build();
  };
  EXPECT_TRUE(an_outsider_goes_on(told(tests::kLauncherPid)));
  EXPECT_FALSE(an_outsider_goes_on(told(tests::pid_of(0))));
  EXPECT_FALSE(an_outsider_goes_on(job().ranks(2).build()));

  model::JobModel loop = told(tests::kLauncherPid);
  loop.seconds_without_progress = 40;
  for (model::Process& process : loop.observations.back().processes) {
    process.start_time = loop.observations.back().time - (process.pid == 800 ? 50 : 60);
  }
  EXPECT_TRUE(an_outsider_goes_on(loop));
  for (model::Process& process : loop.observations.back().processes) {
    process.start_time = loop.observations.back().time - (process.pid == 800 ? 11 : 60);
  }
  EXPECT_FALSE(an_outsider_goes_on(loop));
}

/// Rank 0 waits for the end of g++, whose child has this state letter in both snapshots.
model::JobModel compiles(char letter) {
  return job()
      .ranks(2)
      .stack(kAll,
             "native:wait4 | py:_try_wait@/usr/lib/python3.11/subprocess.py:2003 | "
             "py:build@/srv/train.py:5")
      .process({.pid = 800, .ppid = tests::pid_of(0), .threads = {{.stack = "native:wait4"}}})
      .process({.pid = 801,
                .ppid = 800,
                .state = letter,
                .threads = {{.stack = "native:main", .state = letter}}})
      .build();
}

TEST(Working, AGrandchildThatWantsACpuInBothLooksWorks) {
  EXPECT_TRUE(works(compiles('R')));
  EXPECT_FALSE(works(compiles('S')));
}

/// Rank 0 waits for room in a window that its thread makes; a child process renders something.
model::JobModel beside_a_dashboard(const std::string& thread_stack) {
  return job()
      .ranks(2)
      .stack(kAll,
             "native:sem_wait | py:Condition.wait@/usr/lib/python3.11/threading.py:327 | "
             "py:push@/srv/train.py:9")
      .thread(0, {.stack = thread_stack, .name = "compact"})
      .process({.pid = 800,
                .ppid = tests::pid_of(0),
                .state = 'R',
                .threads = {{.stack = "native:main", .state = 'R'}}})
      .build();
}

TEST(Working, AChildToWhichNoThreadListensIsNoWorkOfTheRank) {
  EXPECT_FALSE(works(
      beside_a_dashboard("native:sem_wait | py:Condition.wait@/usr/lib/python3.11/threading.py:327 "
                         "| py:compact@/srv/train.py:20")));
  EXPECT_TRUE(works(beside_a_dashboard(
      "native:read | py:Connection.recv@/usr/lib/python3.11/multiprocessing/connection.py:250")));
}

/// Rank 0 waits in asyncio's loop, and ran between the snapshots if `runs_later` is higher.
model::JobModel in_event_loop(std::uint64_t runs_later) {
  model::JobModel told =
      job()
          .ranks(2)
          .stack(kAll,
                 "native:epoll_wait | py:select@/usr/lib/python3.11/selectors.py:468 | "
                 "py:_run_once@/usr/lib/python3.11/asyncio/base_events.py:1884 | "
                 "py:main@/srv/train.py:9")
          .build();
  for (std::size_t i = 0; i < told.observations.size(); ++i) {
    for (model::Process& process : told.observations[i].processes) {
      process.threads[0].run_count = i == 0 ? 5 : runs_later;
    }
  }
  return told;
}

TEST(Working, AnEventLoopToWhichSomethingCameIsAtWork) {
  EXPECT_TRUE(works(in_event_loop(6)));
  EXPECT_FALSE(works(in_event_loop(5)));
  EXPECT_EQ(standings(in_event_loop(5)).front().activity, Activity::kEventLoop);
}

/// Rank 0 waits for a pool whose worker was started between the snapshots, after this many others
/// failed.
model::JobModel with_new_worker(int failures) {
  tests::JobBuilder builder = job();
  builder.ranks(2)
      .stack(kAll,
             "native:futex_wait | py:wait@/usr/lib/python3.11/multiprocessing/pool.py:765 | "
             "py:main@/srv/train.py:9")
      .process({.rank = 0, .pid = 800, .threads = {{.stack = "native:main"}}});
  for (int i = 0; i < failures; ++i) {
    builder.fact("exit",
                 {{"parent_pid", std::int64_t{tests::pid_of(0)}}, {"status", std::int64_t{1}}}, 0,
                 700 + i);
  }
  model::JobModel told = builder.build();
  std::erase_if(told.observations.front().processes,
                [](const model::Process& one) { return one.pid == 800; });
  return told;
}

TEST(Working, BirthsOfChildrenThatFailAreNoWork) {
  EXPECT_TRUE(works(with_new_worker(0)));
  EXPECT_FALSE(works(with_new_worker(6)));
}

/// Rank 0 reads from a process of the job that pauses on this line of its own loop.
model::JobModel reads_from(std::string_view server_source) {
  model::JobModel told =
      job()
          .ranks(2)
          .source("/srv/mirror.py", server_source)
          .stack(kAll, "native:recv | py:fetch@/srv/train.py:3")
          .waits(0, {.kind = "socket", .target = "pid:800", .detail = {}})
          .process({.pid = 800,
                    .threads = {{.stack = "native:clock_nanosleep | py:serve@/srv/mirror.py:4"}}})
          .build();
  for (model::Observation& observation : told.observations) {
    for (model::Process& process : observation.processes) {
      if (process.pid == 800) {
        process.threads.front().waits_on =
            model::WaitsOn{.kind = "timer", .target = {}, .detail = {}, .limit = 6.0};
      }
    }
  }
  return told;
}

TEST(Working, WhoWaitsForAServerThatPausesIsServed) {
  EXPECT_TRUE(
      works(reads_from("def serve():\n    while True:\n        c, _ = s.accept()\n"
                       "        time.sleep(8)\n")));
  EXPECT_FALSE(
      works(reads_from("def serve():\n    while True:\n        poll()\n"
                       "        time.sleep(8)\n")));
}

TEST(Working, BytesOfAnotherProcessOfTheJobAreNoServer) {
  EXPECT_FALSE(works(reader("pid:" + std::to_string(tests::pid_of(1)), true)));
}

}  // namespace
}  // namespace ddpdoctor::graph
