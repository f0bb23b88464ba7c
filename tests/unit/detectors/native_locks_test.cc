// SPDX-License-Identifier: Apache-2.0
// Deadlocks over mutexes of native libraries, from frames alone, and their healthy twins.
#include "collector/detectors/evidence/native_locks.h"

#include <string>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

const std::string kMutex =
    "native:__lll_lock_wait@libc.so.6 | native:pthread_mutex_lock@libc.so.6 | ";
const std::string kGil =
    "native:pthread_cond_timedwait@libc.so.6 | native:take_gil@python3.11 | "
    "native:PyGILState_Ensure@python3.11 | ";
const std::string kEval = " | native:_PyEval_EvalFrameDefault@python3.11 | py:step@/srv/train.py:";

/// With one more thread of Python, elimination does not show who has the GIL.
const std::string kPolls = "native:poll@libc.so.6" + kEval + "99";

Findings between(std::string_view kind, const std::string& one, const std::string& other,
                 const std::string& third = {}) {
  JobBuilder builder = job();
  builder.ranks(1).stack(0, one);
  for (const std::string& stack : {other, third}) {
    if (!stack.empty()) {
      builder.thread(0, {.stack = stack});
    }
  }
  return asked(kind, builder.build());
}

TEST(NativeLocks, NamesOfFunctions) {
  EXPECT_EQ(plain_function("c10::ivalue::Future::then(std::function<c10::IValue ()>, int)"),
            "c10::ivalue::Future::then");
  EXPECT_EQ(plain_function("void pool::run<std::vector<int> >(int)"), "pool::run");
  EXPECT_EQ(class_of("c10::ivalue::Future::then(std::function<void ()>)"), "c10::ivalue::Future");
  EXPECT_EQ(class_of("pool::(anonymous namespace)::Impl::get(int)"),
            "pool::(anonymous namespace)::Impl");
  EXPECT_EQ(class_of("std::mutex::lock()"), "");
  EXPECT_EQ(class_of("at::empty(int)"), "");  // a namespace
  EXPECT_EQ(class_of("H5Dread"), "");
}

TEST(NativeLocks, TheGilAndAMutexOfOneClassInOppositeOrder) {
  const std::string frees =
      kMutex + "native:pool::Blocks::release(int)@libpool.so | native:tensor_dealloc@ext.so" +
      kEval + "7";
  const std::string takes = kGil +
                            "native:pool::trace()@ext.so | "
                            "native:pool::Blocks::take(int)@libpool.so | native:start_thread";
  const auto findings = between("gil-deadlock", frees, takes);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
  EXPECT_NE(findings[0].summary.find("pool::Blocks::release"), std::string::npos);
  EXPECT_NE(findings[0].summary.find("probably holds it in pool::Blocks::take"), std::string::npos);
  // A third thread may have the GIL.
  const std::string computes = "native:_PyEval_EvalFrameDefault@python3.11 | py:f@/srv/train.py:3";
  EXPECT_TRUE(between("gil-deadlock", frees, takes, computes).empty());
  // Another object's mutex.
  EXPECT_TRUE(between("gil-deadlock", frees,
                      kGil + "native:net::Link::read()@libnet.so | native:start_thread", kPolls)
                  .empty());
}

TEST(NativeLocks, ACallThatReleasedTheGilIsNotItsHolder) {
  const std::string takes = kGil + "native:pool::Blocks::take(int)@libpool.so";
  for (const std::string released :
       {"native:at::_ops::add::call(int)@libtorch_cpu.so",
        "native:pybind11::gil_scoped_release::call@ext.so", "native:ffi_call@libffi.so.8"}) {
    const std::string waits =
        kMutex + "native:pool::Blocks::release(int)@libpool.so | " + released + kEval + "7";
    EXPECT_TRUE(between("gil-deadlock", waits, takes, kPolls).empty()) << released;
  }
}

TEST(NativeLocks, TheLoadersLockAndALibraryOfC) {
  const auto loader =
      between("gil-deadlock",
              kMutex +
                  "native:dl_iterate_phdr@libc.so.6 | native:_Unwind_Find_FDE@libgcc_s.so.1 | "
                  "native:array_subtract@_multiarray.so" +
                  kEval + "7",
              kGil +
                  "native:closure_fcn@_ctypes.so | native:dl_iterate_phdr@libc.so.6 | "
                  "native:ffi_call@libffi.so | native:_ctypes_callproc@_ctypes.so" +
                  kEval + "9");
  ASSERT_EQ(loader.size(), 1U);
  EXPECT_EQ(loader[0].locations.at(1).line, 9);
  const std::string reads = kMutex +
                            "native:H5TS_mutex_lock@libhdf5.so.200 | "
                            "native:H5Dread@libhdf5.so.200 | native:__pyx_pw_read@_proxy.so" +
                            kEval + "7";
  EXPECT_EQ(between("gil-deadlock", reads,
                    kGil + "native:__pyx_f_err@_errors.so | native:H5E_walk@libhdf5.so.200 | "
                           "native:start_thread@libc.so.6")
                .size(),
            1U);
  // Waiting for the GIL in a library without that mutex.
  EXPECT_TRUE(between("gil-deadlock", reads, kGil + "native:on_event@libuv.so.1", kPolls).empty());
}

TEST(NativeLocks, ThreadsThatWaitForTheGilOfABusyProcessAreHealthy) {
  const std::string waits = kGil + "native:pool::Blocks::take(int)@libpool.so" + kEval + "9";
  EXPECT_TRUE(
      between("gil-deadlock", "native:pool::Blocks::sum(int)@libpool.so" + kEval + "7", waits)
          .empty());
  // The mutex of a condition is not what its waiter waits for.
  EXPECT_TRUE(between("gil-deadlock",
                      "native:pthread_cond_wait@libc.so.6 | native:pool::Blocks::get()@libpool.so" +
                          kEval + "7",
                      waits, "native:mul@m.so" + kEval + "3")
                  .empty());
}

std::string reentered(const std::string& through) {
  return kMutex + "native:fab_notify@libfab.so.1 | " + through +
         " | native:map_insert@libfab.so.1 | native:cache_search@libfab.so.1 | "
         "native:PMPI_Bcast@libmpi.so.40 | native:main@app";
}

TEST(NativeLocks, AThreadThatAHookBringsBackIntoALibraryWaitsForItself) {
  for (const std::string through :
       {"native:_intercept_madvise@libpal.so | native:mi_malloc@app", "native:free@libhooks.so",
        "native:<signal handler called>", "native:gc_collect_main@python3.11"}) {
    const auto findings =
        asked("lock-deadlock", job().ranks(1).stack(0, reentered(through)).build());
    ASSERT_EQ(findings.size(), 1U) << through;
    EXPECT_NE(findings[0].summary.find("probably holds"), std::string::npos);
    EXPECT_NE(findings[0].summary.find("fab_notify"), std::string::npos);
  }
  // A library that calls itself does not lock twice by accident.
  EXPECT_TRUE(asked("lock-deadlock",
                    job().ranks(1).stack(0, reentered("native:log_line@liblog.so")).build())
                  .empty());
}

TEST(NativeLocks, ACallbackThatCallsTheObjectWhoseMutexItsCallerHolds) {
  const auto told = [](const std::string& method) {
    return asked("lock-deadlock",
                 job()
                     .ranks(1)
                     .stack(0, kMutex + "native:pool::Submitter::is_full(int)@libpool.so | " +
                                   "native:_PyEval_EvalFrameDefault@python3.11 | "
                                   "native:pool::Results::put(int)@libpool.so | native:" +
                                   method + "@libpool.so | native:start_thread@libc.so.6")
                     .build());
  };
  const auto findings = told("pool::Submitter::disconnect(int)");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  ASSERT_EQ(findings[0].locations.size(), 2U);
  EXPECT_EQ(findings[0].locations[1].function, "pool::Submitter::disconnect(int)");
  EXPECT_EQ(findings[0].locations[0].module, "libpool.so");
  EXPECT_TRUE(told("pool::Server::run(int)").empty());
}

TEST(NativeLocks, MallocInASignalHandlerThatInterruptedMalloc) {
  const auto told = [](const std::string& interrupted) {
    return asked("lock-deadlock",
                 job()
                     .ranks(1)
                     .stack(0,
                            "native:__lll_lock_wait_private@libc.so.6 | native:malloc@libc.so.6 | "
                            "native:on_signal@app | native:<signal handler called> | native:" +
                                interrupted + "@libc.so.6 | native:main@app")
                     .build());
  };
  EXPECT_EQ(told("_int_free").size(), 1U);
  EXPECT_TRUE(told("poll").empty());
}

TEST(NativeLocks, AnotherThreadInTheLibraryMayHoldTheMutex) {
  const std::string waits = reentered("native:free@libhooks.so");
  EXPECT_TRUE(between("lock-deadlock", waits,
                      "native:memcpy@libc.so.6 | native:cache_fill@libfab.so.1 | native:run@app")
                  .empty());
  EXPECT_EQ(between("lock-deadlock", waits, "native:poll@libc.so.6 | native:run@app").size(), 1U);
}

TEST(NativeLocks, TwoThreadsInsideEachOthersLibraries) {
  const std::string one = kMutex + "native:H5Dread@libhdf5.so | native:nc_fill@libnetcdf.so | ";
  const std::string other =
      kMutex + "native:nc_open@libnetcdf.so | native:H5Literate@libhdf5.so | ";
  EXPECT_EQ(between("lock-deadlock", one + "native:run@app", other + "native:run@app").size(), 1U);
  EXPECT_TRUE(
      between("lock-deadlock", one + "native:run@app", kMutex + "native:nc_open@libnetcdf.so")
          .empty());
}

TEST(NativeLocks, TheEndOfACommunicatorThatDoesNotReturn) {
  const std::string waits =
      "native:syscall@libc.so.6 | native:c10d::ProcessGroupNCCL::waitForFutureOrTimeout@libtorch.so"
      " | native:c10d::ProcessGroupNCCL::abort()@libtorch.so" +
      kEval + "7";
  const std::string aborts =
      "native:usleep@libc.so.6 | native:commReclaim@libnccl.so.2 | "
      "native:pncclCommAbort@libnccl.so.2";
  const auto findings = between("exit-hang", waits, aborts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("pncclCommAbort"), std::string::npos);
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
  // The main thread waits for the thread that called abort(): NCCL's own threads are not meant.
  const auto at_exit =
      between("exit-hang", "native:sem_wait@libc.so.6 | native:wait_for_thread_shutdown@python3.11",
              aborts, "native:poll@libc.so.6 | native:ncclProxyService@libnccl.so.2#proxy.cc:1641");
  ASSERT_EQ(at_exit.size(), 1U);
  EXPECT_EQ(at_exit[0].locations.at(0).function, "pncclCommAbort");
  EXPECT_EQ(at_exit[0].locations.at(0).module, "libnccl.so.2");
  // torch's watchdog aborts after a timeout: an earlier cause.
  EXPECT_TRUE(between("exit-hang", "native:poll@libc.so.6" + kEval + "7",
                      aborts + " | native:c10d::ProcessGroupNCCL::ncclCommWatchdog()@libtorch.so")
                  .empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
