// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/device_waits.h"

#include <vector>

#include <gtest/gtest.h>

#include "collector/graph/framework_calls.h"
#include "collector/graph/standing.h"
#include "collector/model/questions.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using tests::job;
using tests::kAll;

const std::string kLine = " | py:step@/srv/train.py:40 | py:<module>@/srv/train.py:60";
const std::string kTorch = "/venv/lib/python3.11/site-packages/torch/";
const std::string kZero = "/venv/lib/python3.11/site-packages/deepspeed/runtime/zero/";
const std::string kComm = "/venv/lib/python3.11/site-packages/deepspeed/comm/comm.py";

stacks::Frame python(std::string function, std::string file) {
  stacks::Frame frame;
  frame.language = stacks::Language::kPython;
  frame.function = std::move(function);
  frame.file = std::move(file);
  return frame;
}

Standing first_rank(tests::JobBuilder builder) {
  static model::JobModel kept;
  kept = builder.build();
  return standings(kept).at(0);
}

TEST(DeviceWaits, ASpinInTheDriverIsNoMove) {
  const Standing standing = first_rank(
      job()
          .ranks(2)
          .stack_before(kAll,
                        "native:clock_gettime@linux-vdso.so.1 | native:0x7f12@libcuda.so.1 | "
                        "native:cuStreamSynchronize@libcuda.so.1 | "
                        "native:cudaStreamSynchronize@libcudart.so.12 | "
                        "native:at::native::_local_scalar_dense_cuda@libtorch_cuda.so" +
                            kLine)
          .stack(kAll,
                 "native:0x7f99@libcuda.so.1 | native:??@libcuda.so.1 | "
                 "native:cudaStreamSynchronize@libcudart.so.12 | "
                 "native:at::native::_local_scalar_dense_cuda@libtorch_cuda.so" +
                     kLine)
          .state(kAll, 'R'));
  EXPECT_FALSE(standing.moved);
  EXPECT_FALSE(standing.on_cpu);
  EXPECT_EQ(standing.activity, Activity::kGpu);
  EXPECT_EQ(standing.user.line, 40);
}

TEST(DeviceWaits, ASpinInACallOfNcclIsNoWork) {
  const std::string call = "py:barrier@" + kTorch + "distributed/distributed_c10d.py:5356" + kLine;
  for (const char* backend : {"nccl", "gloo"}) {
    const Standing standing =
        first_rank(job().ranks(2).backend(backend).stack(kAll, call).state(kAll, 'R'));
    EXPECT_EQ(standing.activity, Activity::kCollective);
    EXPECT_EQ(standing.on_cpu, backend == std::string("gloo"));
  }
}

/// Ranks of one process each, as py-spy dumped them.
std::vector<Standing> dumped(const std::vector<std::string>& stacks) {
  static model::JobModel kept;  // the result points into it
  tests::JobBuilder builder = job();
  builder.ranks(static_cast<int>(stacks.size()));
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    builder.stack(static_cast<model::Rank>(i), stacks[i]);
  }
  kept = builder.build();
  for (model::Process& process : kept.observations.back().processes) {
    for (model::Thread& thread : process.threads) {
      thread.capture = "from py-spy";
    }
  }
  return standings(kept);
}

TEST(DeviceWaits, DriversOfOtherVendorsAreDrivers) {
  for (const char* module : {"libcuda.so.1", "libcudart.so.12", "libze_intel_gpu.so.1.6.33578",
                             "libascendcl.so", "libmusa.so.5", "libcndrv.so", "libSynapse.so"}) {
    const auto all = dumped(
        {"native:sched_yield@libc.so.6 | native:0x14d8c3a7f9d1@" + std::string(module) + kLine});
    EXPECT_EQ(all.at(0).activity, Activity::kGpu) << module;
  }
  EXPECT_EQ(dumped({"native:sched_yield@libc.so.6 | native:0x14d8c3a7f9d1@libmine.so" + kLine})
                .at(0)
                .activity,
            Activity::kUnknown);
}

TEST(DeviceWaits, ACollectiveOfAnotherVendorIsOne) {
  const auto all =
      dumped({"native:0x14d8@libccl.so.1.0 | "
              "native:c10d::ProcessGroupXCCL::allreduce@libtorch_xpu.so" +
              kLine});
  EXPECT_EQ(all.at(0).activity, Activity::kCollective);
}

TEST(DeviceWaits, TheThreadThatCleansUpIsInNoCollective) {
  const auto all =
      dumped({"native:??@libcudart.so.11.0 | native:cudaGetLastError@libcudart.so.11.0 | "
              "native:c10d::ProcessGroupNCCL::workCleanupLoop@libtorch_cuda.so | "
              "native:start_thread@libpthread.so.0"});
  EXPECT_EQ(all.at(0).activity, Activity::kGpu);
}

TEST(DeviceWaits, ADumpedHostInsideTheDriverWaitsWhateverItCalled) {
  const std::string stack =
      "native:sched_yield | native:??@libcuda.so.1 | native:??@libcudart.so.12 | "
      "native:cudaLaunchKernel@libcudart.so.12" +
      kLine;
  const auto activity = [&stack](const char* capture) {
    model::JobModel told = job().ranks(1).stack(0, stack).build();
    for (model::Process& process : told.observations.back().processes) {
      process.threads.at(0).capture = capture;
    }
    return standings(told).at(0).activity;
  };
  EXPECT_EQ(activity("from gdb"), Activity::kGpu);
  EXPECT_NE(activity(""), Activity::kGpu) << "a live host gets a second look";
}

TEST(DeviceWaits, AnotherLineOfTheUserIsAMove) {
  const Standing standing =
      first_rank(job()
                     .ranks(2)
                     .stack_before(kAll, "native:cuStreamSynchronize@libcuda.so.1" + kLine)
                     .stack(kAll,
                            "native:cuStreamSynchronize@libcuda.so.1 | py:step@/srv/train.py:41 | "
                            "py:<module>@/srv/train.py:60")
                     .state(kAll, 'R'));
  EXPECT_TRUE(standing.moved);
}

TEST(DeviceWaits, KernelsOnTheCpuThatChangeAreAMove) {
  const Standing standing =
      first_rank(job()
                     .ranks(2)
                     .stack_before(kAll, "native:at::native::add_kernel@libtorch_cpu.so" + kLine)
                     .stack(kAll, "native:at::native::mul_kernel@libtorch_cpu.so" + kLine)
                     .state(kAll, 'R'));
  EXPECT_TRUE(standing.moved);
  EXPECT_TRUE(standing.on_cpu);
}

TEST(DeviceWaits, BackwardWaitsInAutogradsThreadForABucket) {
  const std::string backward = "py:_engine_run_backward@" + kTorch + "autograd/graph.py:841";
  const Standing standing =
      first_rank(job()
                     .ranks(2)
                     .stack(kAll, backward + kLine)
                     .state(kAll, 'R')
                     .thread(kAll, {.stack = "native:c10d::ProcessGroupNCCL::WorkNCCL::wait | "
                                             "native:c10d::Reducer::finalize_backward | "
                                             "native:torch::autograd::Engine::thread_main",
                                    .name = "pt_autograd_0"}));
  EXPECT_EQ(standing.activity, Activity::kDdpBackward);
}

/// Ranks in backward(), seen by a tool that shows Python frames alone, and a thread without a name.
Standing in_backward(const std::string& caller, const std::string& other, char state = 'S') {
  return first_rank(
      job()
          .ranks(2)
          .stack(kAll, "py:backward@" + kTorch + "autograd/__init__.py:266" + caller + kLine)
          .state(kAll, 'S')
          .thread(kAll, {.stack = other, .name = "", .state = state}));
}

const std::string kOfDeepSpeed =
    " | py:backward@/usr/lib/python3/dist-packages/deepspeed/runtime/engine.py:1976";
const std::string kApply = " | py:apply@" + kTorch + "autograd/function.py:289";

TEST(DeviceWaits, BackwardIsWhereTheHookOfItsThreadIs) {
  const Standing standing =
      in_backward("", "py:all_gather_into_tensor@" + kTorch +
                          "distributed/distributed_c10d.py:2948 | py:fetch_sub_module@"
                          "/usr/lib/python3/dist-packages/deepspeed/runtime/zero/x.py:385" +
                          kApply);
  EXPECT_EQ(standing.activity, Activity::kCollective);
  ASSERT_TRUE(standing.call);
  EXPECT_EQ(standing.call->operation, "all_gather_into_tensor");
}

TEST(DeviceWaits, BackwardThatRecomputesWaitsForNoBucket) {
  const std::string forward = "py:forward@/usr/lib/python3/dist-packages/transformers/m.py:877";
  EXPECT_EQ(in_backward("", forward + kApply, 'R').activity, Activity::kComputing);
  EXPECT_EQ(in_backward("", forward + kApply).activity, Activity::kUnknown);
}

TEST(DeviceWaits, BackwardWithoutAHookWaitsForABucketUnlessOfDeepSpeed) {
  const std::string helper =
      "py:wait@/usr/lib/python3.11/threading.py:324 | "
      "py:_bootstrap@/usr/lib/python3.11/threading.py:973";
  EXPECT_EQ(in_backward("", helper).activity, Activity::kDdpBackward);
  EXPECT_EQ(in_backward(kOfDeepSpeed, helper).activity, Activity::kUnknown);
}

TEST(DeviceWaits, BackwardOfAJobWithoutGpusIsWork) {
  const Standing standing = first_rank(
      job()
          .ranks(2)
          .stack(kAll, "py:_engine_run_backward@" + kTorch + "autograd/graph.py:841" + kLine)
          .state(kAll, 'R'));
  EXPECT_EQ(standing.activity, Activity::kComputing);
}

TEST(DeviceWaits, AValueOfTheDeviceIsWaitedForAtTheUsersLine) {
  const auto story = [](const std::string& line) {
    return job()
        .ranks(2)
        .stack(kAll, "py:step@/srv/train.py:3")
        .state(kAll, 'R')
        .environment(kAll, "NCCL_DEBUG", "WARN")
        .source("/srv/train.py", "def step():\n    loss = f()\n    " + line + "\n");
  };
  EXPECT_EQ(first_rank(story("total += loss.item()")).activity, Activity::kGpu);
  EXPECT_EQ(first_rank(story("total += tokenise(text)")).activity, Activity::kComputing);
}

TEST(DeviceWaits, TheProgramAsksForNccl) {
  const auto activity = [](const std::string& start) {
    return first_rank(job()
                          .ranks(2)
                          .stack(kAll, "py:step@/srv/train.py:2")
                          .state(kAll, 'R')
                          .source("/srv/train.py",
                                  "def step():\n    total = loss.item()\n" + start + "\n"))
        .activity;
  };
  EXPECT_EQ(activity("dist.init_process_group('nccl')"), Activity::kGpu);
  EXPECT_EQ(activity("dist.init_process_group(\n    rank=0,\n    backend=\"cuda:nccl\")"),
            Activity::kGpu);
  EXPECT_EQ(activity("# dist.init_process_group('nccl')"), Activity::kComputing);
  EXPECT_EQ(activity("dist.init_process_group('gloo')\nprint('no nccl')"), Activity::kComputing);
}

TEST(FrameworkCalls, AWrapperOfTheFrameworkNamesTheOperation) {
  const Standing standing = first_rank(
      job()
          .ranks(2)
          .stack(kAll, "py:wait@" + kTorch + "distributed/distributed_c10d.py:720 | " +
                           "py:_dist_allgather_fn@" + kZero + "partition_parameters.py:96 | " +
                           "py:all_gather_into_tensor@" + kComm + ":305" + kLine)
          .state(kAll, 'R'));
  EXPECT_EQ(standing.activity, Activity::kCollective);
  ASSERT_TRUE(standing.call.has_value());
  EXPECT_EQ(standing.call->operation, "all_gather_into_tensor");
}

TEST(FrameworkCalls, TheInnermostFrameworkLineIsThePlaceOfAProgramWithoutUserCode) {
  const std::string packages = "/opt/venv/lib/python3.12/site-packages/";
  const Standing standing = first_rank(job().ranks(2).stack(
      kAll, "py:_try_wait@/usr/lib/python3.12/subprocess.py:2011 | py:make_cubin@" + packages +
                "triton/backends/nvidia/compiler.py:503 | py:propose@" + packages +
                "transformers/generation/candidate_generator.py:148 | "
                "py:_bootstrap@/usr/lib/python3.12/multiprocessing/process.py:314"));
  EXPECT_EQ(standing.user.function, "propose");
}

TEST(FrameworkCalls, ALibrarysHelperThreadIsNobodysCode) {
  model::Thread thread;
  thread.frames = {python("run", "/venv/lib/python3.11/site-packages/wandb/asyncio_manager.py"),
                   python("_bootstrap", "/usr/lib/python3.11/threading.py")};
  EXPECT_EQ(model::user_frame(thread), nullptr);
}

TEST(FrameworkCalls, PhasesAreNamedByTheTable) {
  const std::vector<stacks::Frame> frames = {
      python("forward", "/srv/model.py"),
      python("GenerationMixin.generate",
             "/venv/lib/python3.11/site-packages/transformers/generation/utils.py")};
  EXPECT_EQ(phase_of(frames), "generate");
}

}  // namespace
}  // namespace ddpdoctor::graph
