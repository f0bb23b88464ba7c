// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/standing.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "collector/graph/blocked_call.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using tests::job;
using tests::kAll;

constexpr const char* kC10d =
    "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py";
constexpr const char* kDdp = "/venv/lib/python3.11/site-packages/torch/nn/parallel/distributed.py";

std::string c10d(const std::string& function, const std::string& locals = {}) {
  return "py:" + function + (locals.empty() ? "" : "{" + locals + "}") + "@" + kC10d + ":100";
}

Standing only_rank(tests::JobBuilder builder) {
  static model::JobModel kept;
  kept = builder.build();
  return standings(kept).at(0);
}

TEST(Standing, OfBarrierIsACollectiveOnTheUsersLine) {
  const Standing standing = only_rank(
      job().ranks(1).stack(0, "native:pthread_cond_wait | native:c10d::Work::wait | " +
                                  c10d("barrier", "group=<ProcessGroup 0>") +
                                  " | "
                                  "py:_exception_logger.<locals>.wrapper@/venv/lib/python3.11/"
                                  "site-packages/torch/distributed/c10d_logger.py:83"
                                  " | py:evaluate@/srv/train.py:61 | py:main@/srv/train.py:97"));
  EXPECT_EQ(standing.activity, Activity::kCollective);
  ASSERT_TRUE(standing.call.has_value());
  EXPECT_EQ(standing.call->operation, "barrier");
  EXPECT_EQ(standing.call->group, "0");
  EXPECT_EQ(standing.user.line, 61);
  EXPECT_EQ(standing.callers.size(), 2U);
  EXPECT_TRUE(standing.waits_for_ranks());
}

TEST(Standing, OfAHostThatWaitsForItsGpuIsTheOldestCallThatTheGpuHasNotFinished) {
  const Standing standing =
      only_rank(job()
                    .ranks(1)
                    .stack(0, "native:cudaStreamSynchronize | py:train@/srv/train.py:30")
                    .call(0, {.operation = "all_reduce",
                              .sequence = 1,
                              .site = "train@/srv/train.py:10",
                              .state = model::CallState::kCompleted,
                              .time = 1})
                    .call(0, {.operation = "broadcast",
                              .sequence = 2,
                              .site = "train@/srv/train.py:11",
                              .state = model::CallState::kStarted,
                              .time = 2})
                    .call(0, {.operation = "all_reduce",
                              .sequence = 3,
                              .site = "train@/srv/train.py:12",
                              .state = model::CallState::kEnqueued,
                              .time = 3}));
  EXPECT_EQ(standing.activity, Activity::kCollective);
  ASSERT_TRUE(standing.call.has_value());
  EXPECT_EQ(standing.call->operation, "broadcast");
  EXPECT_EQ(standing.call->sequence, 2);
  EXPECT_EQ(standing.user.line, 11);
}

TEST(Standing, OfAHostThatWaitsForItsGpuStaysWhereNothingIsOpen) {
  const Standing standing =
      only_rank(job()
                    .ranks(1)
                    .stack(0, "native:cudaStreamSynchronize | py:train@/srv/train.py:30")
                    .call(0, {.operation = "all_reduce",
                              .sequence = 1,
                              .site = "train@/srv/train.py:10",
                              .state = model::CallState::kCompleted,
                              .time = 1}));
  EXPECT_NE(standing.activity, Activity::kCollective);
  EXPECT_EQ(standing.user.line, 30);
}

TEST(Standing, InsideAnInitOfNcclIsACollective) {
  const Standing standing =
      only_rank(job()
                    .ranks(1)
                    .stack(0, "native:ncclCommInitRank | py:__init__@/srv/train.py:7")
                    .call(0, {.operation = "comm_init",
                              .sequence = 1,
                              .site = "__init__@/srv/train.py:7",
                              .state = model::CallState::kEnqueued,
                              .time = 1}));
  EXPECT_EQ(standing.activity, Activity::kCollective);
  ASSERT_TRUE(standing.call.has_value());
  EXPECT_EQ(standing.call->operation, "comm_init");
}

TEST(Standing, ReadsTheArgumentsOfTheCall) {
  const Standing standing = only_rank(
      job()
          .ranks(1)
          .group("1", {0}, "tp")
          .stack(
              0,
              c10d(
                  "all_reduce",
                  "tensor=Tensor(1000x7, float32); op=<RedOpType.MAX: 3>; group=<ProcessGroup 1>") +
                  " | py:f@/srv/train.py:3"));
  ASSERT_TRUE(standing.call.has_value());
  EXPECT_EQ(standing.call->group, "1");
  EXPECT_EQ(standing.call->shape, (std::vector<std::int64_t>{1000, 7}));
  EXPECT_EQ(standing.call->dtype, "float32");
  EXPECT_EQ(standing.call->reduce_op, "max");
}

TEST(Standing, OfRecvKnowsItsPeer) {
  const Standing standing = only_rank(
      job().ranks(2).stack(0, c10d("recv", "src=1; group=None") + " | py:f@/srv/train.py:3"));
  EXPECT_EQ(standing.activity, Activity::kPointToPoint);
  ASSERT_TRUE(standing.call.has_value());
  EXPECT_EQ(standing.call->peer, 1);
}

TEST(Standing, TakesTheSequenceFromTheNewestRecord) {
  const Standing standing = only_rank(job().ranks(1).history(0, 1, 7).barrier(0, 8).stack(
      0, c10d("barrier") + " | py:f@/srv/train.py:3"));
  ASSERT_TRUE(standing.call && standing.call->sequence);
  EXPECT_EQ(*standing.call->sequence, 8);
}

struct Case {
  const char* name;
  std::string stack;
  Activity activity;
};

class StandingOfStack : public testing::TestWithParam<Case> {};

TEST_P(StandingOfStack, IsNamed) {
  EXPECT_EQ(
      only_rank(job().ranks(1).stack(0, GetParam().stack + " | py:f@/srv/train.py:3")).activity,
      GetParam().activity)
      << GetParam().stack;
}

INSTANTIATE_TEST_SUITE_P(
    All, StandingOfStack,
    testing::Values(
        Case{"Backward",
             "native:c10d::Work::wait | native:c10d::Reducer::finalize_backward | "
             "py:_engine_run_backward@/v/torch/autograd/graph.py:10 | "
             "py:Tensor.backward@/v/torch/_tensor.py:5",
             Activity::kDdpBackward},
        Case{"BackwardWithoutNativeFrames",
             "py:_engine_run_backward@/v/torch/autograd/graph.py:10 | "
             "py:backward@/v/torch/_tensor.py:5",
             Activity::kDdpBackward},
        Case{"Buffers",
             "native:c10d::broadcast_coalesced | py:DistributedDataParallel._sync_buffers@" +
                 std::string(kDdp) + ":1 | py:DistributedDataParallel.forward@" + kDdp + ":2",
             Activity::kDdpForward},
        Case{"KernelInsideDdpForward",
             "native:at::native::conv2d | py:DistributedDataParallel.forward@" + std::string(kDdp) +
                 ":2",
             Activity::kUnknown},
        Case{"Constructor",
             "native:c10d::Work::wait | "
             "py:_verify_param_shape_across_processes@/v/torch/distributed/utils.py:2 | "
             "py:DistributedDataParallel.__init__@" +
                 std::string(kDdp) + ":2",
             Activity::kDdpConstructor},
        Case{"ConstructorWithoutPython",
             "native:c10d::Work::wait | native:c10d::Reducer::Reducer(std::vector<at::Tensor>)",
             Activity::kDdpConstructor},
        Case{"NewGroupWaitingInTheStore",
             "native:poll | native:c10d::TCPStore::doWait | " + c10d("_new_process_group_helper") +
                 " | " + c10d("new_group"),
             Activity::kNewGroup},
        Case{"Rendezvous", "native:c10d::TCPStore::doWait | " + c10d("init_process_group"),
             Activity::kRendezvous},
        Case{"Store", "native:poll | native:c10d::TCPStore::doWait", Activity::kStore},
        Case{"AsyncWork", "native:pthread_cond_wait | native:c10d::Work::wait",
             Activity::kCollective},
        Case{"AsyncReceive", "native:c10d::ProcessGroupGloo::RecvWork::wait",
             Activity::kPointToPoint},
        Case{"DataLoader",
             "py:wait@/usr/lib/python3.11/threading.py:1 | py:get@/usr/lib/python3.11/queue.py:1 | "
             "py:_MultiProcessingDataLoaderIter._try_get_data@/v/torch/utils/data/dataloader.py:9",
             Activity::kDataLoader},
        Case{"Sleep", "native:clock_nanosleep | native:time_sleep", Activity::kSleeping},
        Case{"Pdb",
             "native:read | py:Pdb.cmdloop@/usr/lib/python3.11/cmd.py:9 | "
             "py:Pdb.interaction@/usr/lib/python3.11/pdb.py:9",
             Activity::kInput},
        Case{"Destroy", "native:c10d::Work::wait | " + c10d("destroy_process_group"),
             Activity::kExit},
        Case{"Compiling", "native:read | py:compile_fx_inner@/v/torch/_inductor/compile_fx.py:9",
             Activity::kCompiling},
        Case{"Join",
             "native:wait4 | py:Popen.poll@/usr/lib/python3.11/multiprocessing/popen_fork.py:1 | "
             "py:BaseProcess.join@/usr/lib/python3.11/multiprocessing/process.py:9",
             Activity::kJoin}),
    [](const auto& told) { return std::string(told.param.name); });

TEST(Standing, OfAUserCalledBackwardInAnotherFileIsNoDdpBackward) {
  EXPECT_EQ(only_rank(job().ranks(1).stack(0, "py:backward@/srv/my_autograd.py:3")).activity,
            Activity::kUnknown);
}

TEST(Standing, OfALibraryThatImportsTheCompilerIsNoCompiling) {
  const std::string imported =
      "native:stat | py:ConvertFrame@/v/torch/_dynamo/convert_frame.py:7 | "
      "py:<module>@/v/torch/_dynamo/convert_frame.py:90 | py:Optimizer@/v/torch/optim/sgd.py:3 | ";
  EXPECT_NE(only_rank(job().ranks(1).stack(0, imported + "py:main@/srv/train.py:3")).activity,
            Activity::kCompiling);
  const std::string compiles =
      "native:stat | py:_compile@/v/torch/_dynamo/convert_frame.py:7 | py:step@/srv/train.py:3 | ";
  EXPECT_EQ(only_rank(job().ranks(1).stack(0, compiles + "py:<module>@/srv/train.py:9")).activity,
            Activity::kCompiling);
}

TEST(Standing, KnowsDeadExitedAbsentAndUnobservedRanks) {
  const model::JobModel told =
      job().ranks(5).killed(0, 9).exited(1, 0).absent(2).unobserved(3).build();
  const std::vector<Standing> all = standings(told);
  EXPECT_EQ(all[0].activity, Activity::kDead);
  EXPECT_EQ(all[1].activity, Activity::kExited);
  EXPECT_EQ(all[2].activity, Activity::kAbsent);
  EXPECT_EQ(all[3].activity, Activity::kUnobserved);
}

TEST(Standing, SaysWhoMoved) {
  const model::JobModel told = job()
                                   .ranks(2)
                                   .python(kAll, "/srv/train.py", 5, "f")
                                   .stack_before(1, "py:f@/srv/train.py:4")
                                   .build();
  const std::vector<Standing> all = standings(told);
  EXPECT_FALSE(all[0].moved);
  EXPECT_TRUE(all[1].moved);
}

TEST(Standing, FollowsTrainingIntoAnotherThread) {
  const Standing standing = only_rank(
      job()
          .ranks(1)
          .stack(0, "py:join@/usr/lib/python3.11/threading.py:1 | py:main@/srv/train.py:50")
          .thread(0, {.stack = c10d("all_reduce") + " | py:train@/srv/train.py:9"}));
  EXPECT_EQ(standing.activity, Activity::kCollective);
  EXPECT_EQ(standing.user.line, 9);
}

TEST(Standing, ComesFromRecordsAloneWhenThereIsNoStack) {
  model::JobModel told = job().ranks(2).all_reduce(0, 4, 8, "step@/srv/train.py:8").build();
  told.observations.clear();
  const std::vector<Standing> all = standings(told);
  EXPECT_EQ(all[0].activity, Activity::kCollective);
  EXPECT_EQ(all[0].user.line, 8);
  EXPECT_EQ(all[1].activity, Activity::kUnobserved);
}

TEST(Standing, OfARankWhoseCommandWorksIsAtWork) {
  model::JobModel told = tests::job()
                             .ranks(1)
                             .stack(0,
                                    "py:wait@/usr/lib/python3.11/subprocess.py:1 | "
                                    "py:build@/srv/train.py:5")
                             .process({.role = model::Role::kOther, .rank = 0, .pid = 4242})
                             .build();
  ASSERT_EQ(told.observations.size(), 2U);
  EXPECT_FALSE(standings(told).front().on_cpu);
  for (std::size_t look = 0; look < 2; ++look) {
    for (model::Process& process : told.observations[look].processes) {
      process.cpu_seconds = process.pid == 4242 ? static_cast<double>(look) * 10 : 0.0;
    }
  }
  EXPECT_TRUE(standings(told).front().on_cpu);
}

TEST(Standing, OfProcessesWithoutPidsIsComparedRankByRank) {
  model::JobModel told = job()
                             .ranks(2)
                             .python(0, "/srv/train.py", 5, "main")
                             .python(1, "/srv/train.py", 9, "main")
                             .build();
  for (model::Observation& observation : told.observations) {
    for (model::Process& process : observation.processes) {
      process.pid = 0;
    }
  }
  EXPECT_FALSE(standings(told).at(1).moved);
}

TEST(Standing, OfAThreadOfWhichNothingIsToldIsUnobserved) {
  model::JobModel told = job().ranks(1).python(0, "/srv/train.py", 5, "main").build();
  model::Process& rank = *std::find_if(
      told.observations.back().processes.begin(), told.observations.back().processes.end(),
      [](const model::Process& process) { return process.role == model::Role::kRank; });
  model::Thread& thread = rank.threads.front();
  thread.frames.clear();
  EXPECT_EQ(standings(told).at(0).activity, Activity::kUnobserved);
  thread.wchan = "futex_wait_queue";
  EXPECT_NE(standings(told).at(0).activity, Activity::kUnobserved);
}

TEST(Standing, IsToldByWhatTheThreadWaitsOn) {
  EXPECT_EQ(only_rank(job()
                          .ranks(1)
                          .python(0, "/srv/train.py", 5, "main")
                          .waits(0, {.kind = "store-key", .target = "ready", .detail = {}}))
                .activity,
            Activity::kStore);
}

TEST(Standing, OfARankThatOnlyAFactSawEnd) {
  const auto told = job()
                        .ranks(2)
                        .python(0, "/srv/train.py", 5, "main")
                        .absent(1)
                        .fact("exit", {{"status", std::int64_t{0}}}, 1)
                        .build();
  EXPECT_EQ(standings(told).at(1).activity, Activity::kExited);
}

TEST(Standing, OfAZombieIsDeadHoweverItEnded) {
  model::JobModel told = job().ranks(1).python(0, "/srv/train.py", 5, "main").build();
  for (model::Observation& observation : told.observations) {
    for (model::Process& process : observation.processes) {  // the launcher is one of them
      process.state = 'Z';
      process.threads.clear();
    }
  }
  EXPECT_EQ(standings(told).at(0).activity, Activity::kDead);
}

model::Thread native_thread(std::initializer_list<const char*> functions) {
  model::Thread thread;
  for (const char* function : functions) {
    model::Frame frame;
    frame.language = model::Language::kNative;
    frame.function = function;
    thread.frames.push_back(frame);
  }
  return thread;
}

TEST(Standing, WithoutPythonTheWorkerOfGlooTellsWhatTheRankWaitsIn) {
  model::Process process;
  process.threads = {
      native_thread({"pthread_cond_wait", "c10d::Work::wait(std::chrono::duration)", "main"}),
      native_thread({"gloo::barrier(gloo::BarrierOptions&)",
                     "c10d::(anonymous namespace)::AsyncBarrierWork::run()",
                     "c10d::ProcessGroupGloo::AsyncWork::execute(c10::intrusive_ptr)"})};
  const auto call = call_without_python(process, process.threads[0]);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->operation, "barrier");
  process.threads.push_back(
      native_thread({"c10d::AsyncAllreduceWork::run()",
                     "c10d::ProcessGroupGloo::AsyncWork::execute(c10::intrusive_ptr)"}));
  EXPECT_FALSE(call_without_python(process, process.threads[0])) << "two are under way";
}

TEST(Standing, WithoutPythonAFunctionOfTheUsersIsNoCollective) {
  model::Process process;
  process.threads = {native_thread({"mylib::barrier(int)", "main"})};
  EXPECT_FALSE(call_without_python(process, process.threads[0]));
}

TEST(Standing, ARecordOfAnotherThreadIsNotTheCallOfThisOne) {
  const auto told = job()
                        .ranks(2)
                        .stack(kAll,
                               "native:c10d::Work::wait@libtorch_cpu.so | "
                               "py:all_reduce@/v/torch/distributed/distributed_c10d.py:3000 | "
                               "py:step@/srv/train.py:5 | py:main@/srv/train.py:13")
                        .all_reduce(kAll, 1, 8, "step@/srv/train.py:5 | main@/srv/train.py:13")
                        .call(0, {.operation = "all_reduce",
                                  .sequence = 2,
                                  .site = "step@/srv/train.py:5 | main@/srv/train.py:13",
                                  .state = model::CallState::kStarted})
                        .call(0, {.operation = "barrier",
                                  .sequence = 3,
                                  .site = "loop@/srv/saver.py:11",
                                  .state = model::CallState::kStarted})
                        .build();
  const auto standing = standings(told).front();
  ASSERT_TRUE(standing.call);
  EXPECT_EQ(standing.call->operation, "all_reduce");
  EXPECT_EQ(standing.call->sequence, 2);
}

}  // namespace
}  // namespace ddpdoctor::graph
