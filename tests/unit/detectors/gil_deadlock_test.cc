// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "gil-deadlock";

JobBuilder story(const std::string& holder, char state = 'S') {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .stack(1, holder)
      .state(1, state)
      .holds_gil(1)
      .thread(1, {.stack = "native:pthread_cond_timedwait@libc.so.6 | native:take_gil@python3.11 | "
                           "native:PyEval_RestoreThread@python3.11 | py:finish@/srv/train.py:9"});
}

TEST(GilDeadlock, BlamesTheSleepingHolder) {
  const auto findings = asked(
      kKind,
      story("native:sem_wait@libc.so.6 | native:ffi_call@libffi.so.8 | py:upload@/srv/train.py:15")
          .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 15);
  EXPECT_EQ(findings[0].locations.back().line, 9);
  EXPECT_NE(findings[0].locations.back().note.find("needs the GIL"), std::string::npos);
  EXPECT_TRUE(findings[0].summary.starts_with("rank 1 is blocked in native code (train.py:15"))
      << findings[0].summary;
}

TEST(GilDeadlock, IsCertainWhenTheHolderWaitsForAThreadThatWantsTheGil) {
  const auto told = story("native:pthread_join@libc.so.6 | py:upload@/srv/train.py:15")
                        .waits(1, {.kind = "thread",
                                   .target = "thread:" + std::to_string(tid_of(1, 1)),
                                   .detail = {}})
                        .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
}

const std::string kTakesGil =
    "native:pthread_cond_timedwait@libc.so.6 | native:take_gil@python3.11 | "
    "native:PyEval_RestoreThread@python3.11";

/// One process of which a tool shows all native stacks, but not who holds the GIL.
JobBuilder by_elimination(const std::string& main, const std::string& third = {}) {
  JobBuilder builder = job().ranks(1).stack(0, main).thread(0, {.stack = kTakesGil});
  return third.empty() ? builder : builder.thread(0, {.stack = third});
}

TEST(GilDeadlock, TheOnlyThreadThatWaitsForSomethingElseHoldsTheGil) {
  const std::string blocked =
      "native:accept@libc.so.6 | native:connect_peers@solver.so | native:_PyCFunction_Fast@python";
  const auto findings = asked(kKind, by_elimination(blocked).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].evidence.at(0).text.find("holds the GIL"), std::string::npos);
  // Another thread of Python may hold it, or a thread of no Python waits.
  EXPECT_TRUE(
      asked(kKind, by_elimination(blocked, "native:mul@a.so | native:_PyEval_Eval@python").build())
          .empty());
  EXPECT_EQ(
      asked(kKind, by_elimination(blocked, "native:poll@libc.so.6 | native:loop@a.so").build())
          .size(),
      1u);
}

/// A worker of rayon called Python, and that Python code called rayon again.
const std::string kInPoolTwice =
    "native:syscall@libc.so.6 | native:rayon_core::sleep::Sleep::sleep@frames.so | "
    "native:rayon_core::join::join_context@frames.so | py:convert@/venv/frames/convert.py:31 | "
    "native:rayon_core::registry::WorkerThread::wait_until_cold@frames.so";
const std::string kPoolWantsGil =
    kTakesGil + " | native:rayon_core::job::StackJob::execute@frames.so";
const std::string kJoins =
    "native:futex@libc.so.6 | native:PyThread_acquire_lock_timed@python3.12 | "
    "py:join@/usr/lib/python3.12/threading.py:1149 | py:<module>@/srv/prepare.py:40";

TEST(GilDeadlock, APoolNeedsTheGilThatItsCallerHolds) {
  const auto told = [](const std::string& main, const std::string& other) {
    return asked(kKind, job()
                            .ranks(1)
                            .stack(0, main)
                            .thread(0, {.stack = kInPoolTwice})
                            .thread(0, {.stack = other})
                            .build());
  };
  const auto findings = told(kJoins, kPoolWantsGil);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("holds the GIL and waits for rayon's threads (convert.py:31"),
            std::string::npos)
      << findings[0].summary;
  // Another caller of the pool may hold the GIL.
  const auto either = told(
      "native:syscall@libc.so.6 | native:rayon_core::latch::LockLatch::wait@frames.so | "
      "py:collect@/venv/frames/lazy.py:7 | py:<module>@/srv/prepare.py:40",
      kPoolWantsGil);
  ASSERT_EQ(either.size(), 1u);
  EXPECT_NE(either[0].summary.find("probably holds the GIL"), std::string::npos);
  // A thread that computes holds the GIL and will release it; or no thread of the pool needs it.
  EXPECT_TRUE(told("native:mul@a.so | py:<module>@/srv/prepare.py:40", kPoolWantsGil).empty());
  EXPECT_TRUE(told(kJoins, "native:rayon_core::sleep::Sleep::sleep@frames.so").empty());
}

TEST(GilDeadlock, AHolderThatComputesWillReleaseIt) {
  EXPECT_TRUE(
      asked(kKind,
            by_elimination("native:sgemm@libopenblas.so | native:cfunction_call@python").build())
          .empty());
  EXPECT_TRUE(asked(kKind, by_elimination("native:index_select@libtorch_cpu.so | "
                                          "native:cfunction_call@python")
                               .build())
                  .empty());
}

/// The findings on one process: its main thread, and a second one.
Findings of_two_threads(const std::string& main, const std::string& second) {
  return asked(kKind, job().ranks(1).stack(0, main).thread(0, {.stack = second}).build());
}

/// A thread of the driver calls a function of the program, which needs the GIL.
const std::string kCallback = kTakesGil +
                              " | native:guard@bindings.so | py:fill@/srv/mask.py:12 | "
                              "native:trampoline@bindings.so | native:worker@libgpu.so.5";

TEST(GilDeadlock, ACallMayWaitForTheCallbackThatNeedsTheGil) {
  const std::string launches =
      "native:sched_yield@libc.so.6 | native:submit@libgpu.so.5 | native:launch_host@librt.so | "
      "py:run@/srv/step.py:30";
  const auto findings = of_two_threads(launches, kCallback);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("blocked in submit (step.py:30"), std::string::npos)
      << findings[0].summary;
  EXPECT_NE(findings[0].locations.back().note.find("callback"), std::string::npos);
  // The caller computes; or the thread that needs the GIL is not the driver's.
  EXPECT_TRUE(
      of_two_threads("native:submit@libgpu.so.5 | py:run@/srv/step.py:30", kCallback).empty());
  EXPECT_TRUE(of_two_threads(launches, kTakesGil + " | py:load@/srv/data.py:7").empty());
}

TEST(GilDeadlock, CodeThatReleasesTheGilIsNotTheHolder) {
  const std::string in_driver =
      "native:@libc.so.6 | native:pthread_rwlock_wrlock@libc.so.6 | native:set_device@libgpu.so.5 "
      "| "
      "py:store@/srv/store.py:9";
  const auto told = [&in_driver](const std::string& other) {
    return asked(kKind, by_elimination(in_driver, other).build()).size();
  };
  EXPECT_EQ(told("native:clock_nanosleep@libc.so.6 | native:time_sleep@python3.12 | "
                 "py:main@/srv/store.py:40"),
            1U);
  EXPECT_EQ(told("native:pthread_rwlock_wrlock@libc.so.6 | native:launch@libgpu.so.5 | "
                 "native:at::_ops::clone::call@libtorch_cpu.so | py:slots@/srv/store.py:11"),
            1U);
  EXPECT_EQ(told("native:pthread_rwlock_wrlock@libc.so.6 | native:launch@libgpu.so.5 | "
                 "py:slots@/srv/store.py:11"),
            0U);
}

TEST(GilDeadlock, AThreadThatRunsPythonWaitsForTheGilAgain) {
  const std::string own =
      "native:pthread_cond_timedwait@libc.so.6 | native:take_gil@python3.7 | "
      "native:PyGILState_Ensure@python3.7 | native:Guard::Guard@libarr.so | "
      "native:arr::release@libarr.so | ";
  const std::string evaluates = "native:_PyEval_EvalFrameDefault@python3.7 | native:run@app";
  const std::string joins = "native:pthread_join@libc.so.6 | native:main@app";
  const auto findings = of_two_threads(joins, own + evaluates);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("arr::release"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].summary.find("to end"), std::string::npos) << findings[0].summary;
  // The thread has released the GIL; it does not run Python; another thread computes.
  EXPECT_TRUE(
      of_two_threads(joins, own + "native:gil_scoped_release@libarr.so | " + evaluates).empty());
  EXPECT_TRUE(of_two_threads(joins, own + "native:run@app").empty());
  EXPECT_TRUE(of_two_threads("native:mul@libarr.so | native:main@app", own + evaluates).empty());
  EXPECT_TRUE(
      of_two_threads("native:mul@libarr.so | py:serve@/srv/app.py:3", own + evaluates).empty());
}

TEST(GilDeadlock, IsSilentWhenTheHolderComputes) {
  EXPECT_TRUE(
      asked(kKind, story("native:sgemm@libopenblas.so | py:step@/srv/train.py:15", 'R').build())
          .empty());
}

TEST(GilDeadlock, IsSilentWhenTheHolderWaitsForOtherRanks) {
  EXPECT_TRUE(asked(kKind, story(kInBarrier).build()).empty());
}

TEST(GilDeadlock, IsSilentWhenNobodyWantsTheGil) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(2)
                               .stack(kAll, kInBarrier)
                               .stack(1, "native:sem_wait@libc.so.6 | py:upload@/srv/train.py:15")
                               .holds_gil(1)
                               .build())
                  .empty());
}

TEST(GilDeadlock, DoesNotAccuseInAMovingJob) {
  EXPECT_TRUE(asked(kKind, story("native:sem_wait@libc.so.6 | py:upload@/srv/train.py:15")
                               .progress(model::Progress::kMoving)
                               .build())
                  .empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
