// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/device_calls.h"

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

/// One process that gdb dumped, of one moment.
model::JobModel of_gdb(const std::string& stack) {
  model::JobModel told = job().ranks(1).stack(0, stack).build();
  told.progress = model::Progress::kUnknown;
  told.observations.resize(1);
  std::erase_if(told.observations[0].processes,
                [](const model::Process& one) { return !one.rank; });
  for (model::Process& process : told.observations[0].processes) {
    process.role = model::Role::kOther;
    process.rank.reset();
    process.threads.at(0).capture = "from gdb";
  }
  return told;
}

const std::string kBelowTheCall =
    "native:??@libcuda.so.1 | native:cuptiActivityEnable@libtorch_cpu.so | "
    "native:libkineto::ActivityProfiler::configure@libtorch_cpu.so | "
    "native:torch::autograd::profiler::prepareProfiler@libtorch_python.so | "
    "native:pybind11::cpp_function::dispatcher@libtorch_python.so | "
    "native:_PyEval_EvalFrameDefault@python3.8";

TEST(DeviceCalls, ALockInsideTheDriverIsNamedWithTheCallThatAUserKnows) {
  const auto findings =
      asked("undetermined",
            of_gdb("native:__pthread_rwlock_wrlock_full@libpthread.so.0 | " + kBelowTheCall));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find(
                "waits for a lock inside libcuda.so.1, in cuptiActivityEnable, called by "
                "torch::autograd::profiler::prepareProfiler"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_TRUE(findings[0].culprits.empty());
}

TEST(DeviceCalls, ALockOfAnyLibraryIsNamedButNoConditionAndNotTheGil) {
  const std::string rest =
      "native:decoder::next@libdecoder.so | native:decoder_read@libdecoder.so | "
      "native:_PyEval_EvalFrameDefault@python3.8";
  const auto findings = asked("undetermined", of_gdb("native:__lll_lock_wait@libc.so.6 | "
                                                     "native:pthread_mutex_lock@libc.so.6 | " +
                                                     rest));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("waits for a lock inside libdecoder.so, in decoder::next, "
                                     "called by decoder_read"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_TRUE(
      asked("undetermined", of_gdb("native:pthread_cond_wait@libc.so.6 | " + rest)).empty());
  EXPECT_TRUE(asked("undetermined", of_gdb("native:pthread_mutex_lock@libc.so.6 | "
                                           "native:take_gil@libpython3.8.so | "
                                           "native:PyEval_RestoreThread@libpython3.8.so"))
                  .empty());
}

TEST(DeviceCalls, AProcessThatWaitsForRequestsOrWorksIsNotNamed) {
  EXPECT_TRUE(asked("undetermined", of_gdb("native:epoll_wait@libc.so.6 | native:serve@server | "
                                           "native:main@server"))
                  .empty());
  auto works = of_gdb("native:__pthread_rwlock_wrlock_full@libpthread.so.0 | " + kBelowTheCall);
  works.observations[0].processes[0].threads[0].state = 'R';
  EXPECT_TRUE(asked("undetermined", works).empty());
}

TEST(DeviceCalls, TheCallIsTheOutermostNameOfTheDevicesLibraries) {
  const auto told = of_gdb(
      "native:sched_yield@libc.so.6 | native:??@libze_intel_gpu.so.1 | "
      "native:urEnqueueUSMMemcpy@libur_loader.so.0 | native:sycl::_V1::queue::memcpy@libsycl.so.9 "
      "| native:at::native::xpu::_copy_xpu@libtorch_xpu.so | native:main@train");
  const auto call = device_call_of(told.observations[0].processes[0].threads[0]);
  ASSERT_TRUE(call.has_value());
  EXPECT_FALSE(call->lock);
  EXPECT_EQ(call->inside->module, "libze_intel_gpu.so.1");
  EXPECT_EQ(call->call->function, "sycl::_V1::queue::memcpy");
}

}  // namespace
}  // namespace ddpdoctor::detectors
