// SPDX-License-Identifier: Apache-2.0
#include "collector/model/gpu_queue.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

using sources::RecordedState;

constexpr std::uint64_t kCompute = 0x10;
constexpr std::uint64_t kTalk = 0x20;

sources::RecordedEvent kernel(std::uint64_t stream, std::int64_t place, const char* name,
                              RecordedState state) {
  return {.kind = "gpu-kernel", .state = state, .peer = place, .object = stream, .text = name};
}

JobModel job_of(std::vector<sources::RecordedEvent> events) {
  sources::Recording recording;
  recording.pid = 100;
  recording.rank = 1;
  recording.events = std::move(events);
  JobModel job;
  add_gpu_facts(job, recording);
  return job;
}

std::vector<std::string> told(std::vector<sources::RecordedEvent> events) {
  std::vector<std::string> texts;
  for (const GpuSentence& sentence : gpu_queue(job_of(std::move(events)))) {
    EXPECT_EQ(sentence.rank, 1);
    texts.push_back(sentence.text);
  }
  return texts;
}

TEST(GpuQueue, NamesTheKernelOfAnotherStreamThatNcclWaitsFor) {
  EXPECT_EQ(told({kernel(kCompute, 0, "ampere_sgemm", RecordedState::kStarted),
                  kernel(kTalk, 0,
                         "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24"
                         "ncclDevKernelArgsStorageILm4096EE",
                         RecordedState::kStarted),
                  {.kind = "gpu-behind",
                   .count = static_cast<std::int64_t>(kCompute),
                   .peer = 0,
                   .object = kTalk,
                   .text = "ampere_sgemm"}}),
            (std::vector<std::string>{"ncclDevKernel_AllReduce_Sum_f32_RING_LL in stream 0x20 is "
                                      "queued behind ampere_sgemm of stream 0x10"}));
}

TEST(GpuQueue, NamesWhatWasLaunchedBetweenTwoKernelsOfNccl) {
  const JobModel job = job_of({kernel(0, 4, "before", RecordedState::kUnknown),
                               kernel(0, 3, "ncclDevKernel_Generic", RecordedState::kUnknown),
                               kernel(0, 2, "first", RecordedState::kUnknown),
                               kernel(0, 1, "second", RecordedState::kUnknown),
                               kernel(0, 0, "ncclDevKernel_Generic", RecordedState::kUnknown)});
  EXPECT_EQ(launched_before(job, 1), (std::vector<std::string>{"first", "second"}));
  EXPECT_TRUE(launched_before(job, 0).empty());
}

TEST(GpuQueue, ReadsANameThatWasCutOff) {
  const JobModel job = job_of({kernel(0, 1,
                                      "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14"
                                      "func_wrapper_tIfZNS0_11sum_functorIfffEclERNS_14TensorItera",
                                      RecordedState::kUnknown),
                               kernel(0, 0, "ncclDevKernel_Generic", RecordedState::kUnknown)});
  EXPECT_EQ(launched_before(job, 1), std::vector<std::string>{"at::native::reduce_kernel"});
}

TEST(GpuQueue, NamesTheUnfinishedKernelBeforeItInTheSameStream) {
  EXPECT_EQ(told({kernel(kTalk, 1, "long_kernel", RecordedState::kStarted),
                  kernel(kTalk, 0, "ncclDevKernel_Generic", RecordedState::kStarted)}),
            (std::vector<std::string>{
                "ncclDevKernel_Generic in stream 0x20 is queued behind long_kernel of the same "
                "stream"}));
  EXPECT_TRUE(told({kernel(kTalk, 1, "long_kernel", RecordedState::kCompleted),
                    kernel(kTalk, 0, "ncclDevKernel_Generic", RecordedState::kStarted)})
                  .empty());
}

TEST(GpuQueue, IsSilentWhereEndsAreNotTold) {
  EXPECT_TRUE(told({kernel(kTalk, 1, "long_kernel", RecordedState::kUnknown),
                    kernel(kTalk, 0, "ncclDevKernel_Generic", RecordedState::kUnknown)})
                  .empty());
}

TEST(GpuQueue, TakesTheNewestWordOnAKernel) {
  EXPECT_TRUE(told({kernel(kTalk, 1, "long_kernel", RecordedState::kStarted),
                    kernel(kTalk, 0, "ncclDevKernel_Generic", RecordedState::kStarted),
                    kernel(kTalk, 0, "ncclDevKernel_Generic", RecordedState::kCompleted)})
                  .empty());
}

TEST(GpuQueue, SaysWhichStreamAThreadWaitsFor) {
  const sources::RecordedEvent thread{
      .kind = "gpu-wait", .count = 77, .object = kTalk, .text = "cuStreamSynchronize"};
  EXPECT_EQ(told({kernel(kTalk, 0, "ncclDevKernel_Generic", RecordedState::kStarted), thread}),
            (std::vector<std::string>{
                "thread 77 waits in cuStreamSynchronize for stream 0x20, where NCCL's kernel is"}));
  EXPECT_EQ(told({thread}),
            (std::vector<std::string>{"thread 77 waits in cuStreamSynchronize for 0x20"}));
}

TEST(GpuQueue, KeepsWhyAWindowDidNotOpen) {
  const JobModel job = job_of(
      {{.kind = "gpu-window", .state = RecordedState::kFailed, .text = "another tool uses CUPTI"}});
  ASSERT_EQ(job.facts.size(), 1U);
  EXPECT_EQ(job.facts[0].flag("open"), false);
  EXPECT_EQ(job.facts[0].text("why"), "another tool uses CUPTI");
}

TEST(GpuQueue, CountsLaunchesOfGraphsByRank) {
  JobModel job;
  EXPECT_EQ(graph_launches(job), "");
  for (const auto& [rank, launches] :
       std::vector<std::pair<Rank, std::int64_t>>{{0, 12}, {1, 12}, {2, 4}, {2, 7}}) {
    job.facts.push_back(
        {.rank = rank, .pid = 7, .kind = "graph-launch", .fields = {{"launches", launches}}});
  }
  EXPECT_EQ(graph_launches(job),
            "CUDA graphs with calls of NCCL were launched 11 times on rank 2, 12 times on ranks "
            "0 and 1; calls inside graphs are compared by the number of launches only");
}

}  // namespace
}  // namespace ddpdoctor::model
