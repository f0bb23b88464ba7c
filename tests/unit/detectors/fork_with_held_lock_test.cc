// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "fork-with-held-lock";

const std::string kInLogging =
    "native:__futex_abstimed_wait_common64@libc.so.6 | "
    "native:PyThread_acquire_lock_timed@python3.11 | "
    "py:Handler.acquire@/usr/lib/python3.11/logging/__init__.py:917 | py:serve@/srv/train.py:12 "
    "| " +
    kForkedChild;

JobBuilder story(ThreadStory child) {
  return job()
      .ranks(2)
      .command({"python", "train.py"})
      .stack(kAll, kInBarrier)
      .stack(0, "native:wait4@libc.so.6 | py:main@/srv/train.py:22")
      .source("/srv/train.py",
              "lock = threading.Lock()\ndef serve():\n    with lock:\n        pass\n")
      .process({.rank = 0,
                .pid = 777,
                .command = {"python", "train.py"},
                .threads = {std::move(child)}});
}

TEST(ForkWithHeldLock, KnowsALoggingLockInASingleThreadedChild) {
  const auto findings = asked(kKind, story({.stack = kInLogging}).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

const std::string kInNativeLock =
    "native:__lll_lock_wait_private@libc.so.6 | native:__internal_atexit@libc.so.6 | "
    "native:decode@image.so";

/// A worker known only from a dump, by its name.
model::JobModel dumped(std::string stack, model::Role role = model::Role::kDataLoaderWorker) {
  model::JobModel out =
      job()
          .ranks(1)
          .stack(0, "py:main@/srv/train.py:22")
          .process({.role = role, .pid = 777, .threads = {{.stack = std::move(stack)}}})
          .build();
  for (model::Observation& observation : out.observations) {
    for (model::Process& process : observation.processes) {
      process.threads[0].capture = "from gdb";
    }
  }
  return out;
}

TEST(ForkWithHeldLock, KnowsAWorkerWhoseOnlyThreadWaitsInALibrary) {
  const auto findings = asked(kKind, dumped(kInNativeLock));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("__internal_atexit"), std::string::npos)
      << findings[0].summary;
  EXPECT_TRUE(asked(kKind, dumped(kInNativeLock, model::Role::kOther)).empty());
  EXPECT_TRUE(asked(kKind, dumped("native:poll@libc.so.6 | native:decode@image.so")).empty());
}

TEST(ForkWithHeldLock, NamesTheOwnerThatTheMutexNames) {
  const auto findings = asked(
      kKind,
      story({.stack = "native:__lll_lock_wait@libc.so.6 | native:pthread_mutex_lock@libc.so.6 | "
                      "py:serve@/srv/train.py:12 | py:main@/srv/train.py:22",
             .waits_on = model::WaitsOn{.kind = "mutex", .target = "thread:4242", .detail = {}}})
          .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].evidence.at(0).text.find("thread 4242"), std::string::npos);
}

TEST(ForkWithHeldLock, KnowsAUsersLockByItsSourceLine) {
  const auto findings = asked(
      kKind,
      story(
          {.stack =
               "native:__new_sem_wait@libc.so.6 | native:PyThread_acquire_lock_timed@python3.11 | "
               "py:serve@/srv/train.py:3 | py:main@/srv/train.py:22"})
          .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
}

/// A helper thread of a library in the parent, and a child that sends it a request.
JobBuilder asks_a_thread(const std::string& file_in_child) {
  const std::string packages = "/venv/lib/python3.11/site-packages/tracker/";
  return story({.stack = "native:__futex_abstimed_wait_common64@libc.so.6 | "
                         "py:wait@/usr/lib/python3.11/threading.py:320 | "
                         "py:result@/usr/lib/python3.11/concurrent/futures/_base.py:451 | "
                         "py:run@" +
                         packages + file_in_child + ":137 | py:serve@/srv/train.py:12 | " +
                         kForkedChild})
      .thread(0, {.stack = "native:epoll_wait@libc.so.6 | py:_main@" + packages +
                           "loop.py:234 | py:_bootstrap@/usr/lib/python3.11/threading.py:1002"});
}

TEST(ForkWithHeldLock, KnowsAThreadThatForkDidNotCopy) {
  const auto findings = asked(kKind, asks_a_thread("loop.py").build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(ForkWithHeldLock, NoOtherThreadCompletesTheFutureOfTheOnlyThread) {
  const auto findings = asked(kKind, asks_a_thread("other.py").build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].evidence.at(0).text.find("one thread only"), std::string::npos);
}

TEST(ForkWithHeldLock, AnotherThreadOrASignalMayEndTheWait) {
  auto two = asks_a_thread("other.py").build();
  for (model::Observation& observation : two.observations) {
    model::Thread other = observation.processes.back().threads.front();
    other.tid = 778;
    other.frames.resize(1);
    observation.processes.back().threads.push_back(other);
  }
  EXPECT_TRUE(asked(kKind, two).empty());
  EXPECT_TRUE(asked(kKind, story({.stack = "native:__futex_abstimed_wait_common64@libc.so.6 | "
                                           "py:wait@/usr/lib/python3.11/threading.py:320 | "
                                           "py:wait@/usr/lib/python3.11/threading.py:607 | "
                                           "py:serve@/srv/train.py:12 | " +
                                           std::string(kForkedChild)})
                               .build())
                  .empty());
}

TEST(ForkWithHeldLock, IsSilentOnAQueueOfMultiprocessing) {
  EXPECT_TRUE(
      asked(
          kKind,
          story(
              {.stack =
                   "native:__new_sem_wait@libc.so.6 | native:semlock_acquire@_multiprocessing.so | "
                   "py:Queue.get@/usr/lib/python3.11/multiprocessing/queues.py:102 | "
                   "py:serve@/srv/train.py:12 | " +
                   kForkedChild})
              .build())
          .empty());
}

TEST(ForkWithHeldLock, IsSilentWhenTheChildHasAnotherThread) {
  auto told = story({.stack = kInLogging}).build();
  for (model::Observation& observation : told.observations) {
    observation.processes.back().threads.push_back(observation.processes.back().threads.front());
    observation.processes.back().threads.back().tid = 778;
  }
  EXPECT_TRUE(asked(kKind, told).empty());
}

TEST(ForkWithHeldLock, IsSilentOnAnOwnerInTheSameProcess) {
  EXPECT_TRUE(
      asked(
          kKind,
          story({.stack = "native:sleep@libc.so.6 | py:serve@/srv/train.py:12",
                 .waits_on = model::WaitsOn{.kind = "mutex", .target = "thread:777", .detail = {}}})
              .build())
          .empty());
}

TEST(ForkWithHeldLock, AChildInTheHandlersOfForkWaitsForAMutexOfALibrary) {
  const auto told = [](const std::string& outer) {
    return asked(
        "fork-with-held-lock",
        job()
            .ranks(1)
            .stack(0, "native:poll@libc.so.6 | py:wait@/srv/train.py:4")
            .process({.rank = 0,
                      .pid = 900,
                      .threads = {{.stack = "native:syscall@libc.so.6 | "
                                            "native:AbslInternalPerThreadSemWait@libgrpc.so | "
                                            "native:absl::Mutex::LockSlow@libgrpc.so | "
                                            "native:grpc_postfork_child@libgrpc.so | native:" +
                                            outer + "@python3.11 | py:load@/srv/data.py:9"}}})
            .build());
  };
  const auto findings = told("PyOS_AfterFork_Child");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].evidence.at(0).text.find("grpc_postfork_child"), std::string::npos);
  EXPECT_TRUE(told("PyOS_BeforeFork").empty());  // that is the parent
}

const std::string kInBuffer =
    "native:do_futex_wait@libc.so.6 | native:__new_sem_wait_slow@libc.so.6 | "
    "native:PyThread_acquire_lock_timed@python3.11 | native:_enter_buffered_busy@python3.11 | ";

TEST(ForkWithHeldLock, KnowsTheLockOfAStreamAndTheGil) {
  const auto buffer = asked(kKind, story({.stack = kInBuffer + kForkedChild}).build());
  ASSERT_EQ(buffer.size(), 1U);
  EXPECT_NE(buffer[0].summary.find("stdout"), std::string::npos) << buffer[0].summary;
  const auto gil = asked(
      kKind, story({.stack = "native:pthread_cond_timedwait@libc.so.6 | native:take_gil@python3.11 "
                             "| native:PyEval_RestoreThread@python3.11 | "
                             "native:server_child@libserver.so | " +
                             kForkedChild})
                 .build());
  ASSERT_EQ(gil.size(), 1U);
  EXPECT_NE(gil[0].summary.find("the GIL"), std::string::npos) << gil[0].summary;
}

TEST(ForkWithHeldLock, KnowsAFlushThatWaitsForTheLockOfItsStream) {
  const auto told = [](const std::string& wait) {
    return asked(kKind, story({.stack = "native:" + wait +
                                        "@libpthread.so.0 | native:<built-in method flush of "
                                        "_io.BufferedWriter object | " +
                                        kForkedChild})
                            .build());
  };
  const auto findings = told("do_futex_wait.constprop.1");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("stdout"), std::string::npos) << findings[0].summary;
  // The pipe is full; or it waits for the GIL, with a limit.
  EXPECT_TRUE(told("write").empty());
  EXPECT_TRUE(told("pthread_cond_timedwait").empty());
}

TEST(ForkWithHeldLock, ASignalOfAThreadThatForkDidNotCopyNeverComes) {
  const auto told = [](const std::string& wait, const std::string& asker) {
    return asked(kKind, story({.stack = "native:" + wait + "@libc.so.6 | native:" + asker + " | " +
                                        kForkedChild})
                            .build())
        .size();
  };
  EXPECT_EQ(told("pthread_cond_wait", "media::Reader::next@libmedia.so"), 1U);
  EXPECT_EQ(told("pthread_cond_wait", "drop_gil@python3.11"), 1U);
  // A wait with a timeout, the network, a semaphore that other processes may post, the GPU.
  EXPECT_EQ(told("pthread_cond_timedwait", "media::Reader::next@libmedia.so"), 0U);
  EXPECT_EQ(told("poll", "media::Reader::next@libmedia.so"), 0U);
  EXPECT_EQ(told("sem_wait", "media::Reader::next@libmedia.so"), 0U);
  EXPECT_EQ(told("pthread_cond_wait", "cuStreamSynchronize@libcuda.so.1"), 0U);
}

TEST(ForkWithHeldLock, AForkInWhichAHandlerWaitsDoesNotReturn) {
  const auto told = [](const std::string& stack) {
    return asked(kKind, job().ranks(1).stack(0, stack).build());
  };
  const std::string fork =
      "native:fork@libc.so.6 | native:subprocess_fork_exec@_posixsubprocess.so | "
      "py:start@/srv/train.py:12";
  const auto findings = told(
      "native:pthread_cond_wait@libc.so.6 | native:grpc_core::Pool::PrepareFork()@cygrpc.so | "
      "native:grpc_prefork@cygrpc.so | " +
      fork);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("grpc_prefork"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].fix.find("GRPC_ENABLE_FORK_SUPPORT"), std::string::npos);
  EXPECT_TRUE(told("native:cpu_work@libx.so | native:x_prefork@libx.so | " + fork).empty());
  EXPECT_TRUE(told("native:__run_fork_handlers@libc.so.6 | " + fork).empty());
}

TEST(ForkWithHeldLock, TheOneThreadThatGdbWasAskedForMayNotBeTheOnlyOne) {
  const auto told = [](const std::string& tool) {
    auto child = story({.stack = "native:pthread_cond_wait@libc.so.6 | "
                                 "native:media::Reader::next@libmedia.so | " +
                                 kForkedChild})
                     .build();
    for (model::Observation& observation : child.observations) {
      observation.processes.back().threads.front().capture = tool;
    }
    return asked(kKind, child).size();
  };
  EXPECT_EQ(told("from gdb"), 1U);
  EXPECT_EQ(told("from gdb, one thread"), 0U);
  EXPECT_EQ(told("from py-spy"), 0U);  // it does not show threads without Python
}

TEST(ForkWithHeldLock, MultiprocessingOfPython2AlwaysForks) {
  const auto of = [](const std::string& version) {
    const std::string library = "/usr/lib/python" + version;
    return asked(kKind,
                 dumped("py:acquire@" + library + "/threading.py:174 | py:_acquireLock@" + library +
                            "/logging/__init__.py:212 | py:reset@/srv/a.py:15 | "
                            "py:run@" +
                            library + "/multiprocessing/process.py:114",
                        model::Role::kOther));
  };
  EXPECT_EQ(of("2.7").size(), 1u);
  EXPECT_TRUE(of("3.11").empty()) << "it may have been spawned";
}

}  // namespace
}  // namespace ddpdoctor::detectors
