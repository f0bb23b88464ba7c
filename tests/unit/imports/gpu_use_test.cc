// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/gpu_use.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

model::JobModel read(std::string_view text) {
  model::JobModel job;
  const auto lines = base::split(text, '\n');
  read_gpu_use(lines, job);
  return job;
}

TEST(GpuUse, IsReadFromTheTableOfNvidiaSmi) {
  const model::JobModel job = read(
      "| NVIDIA-SMI 520.56.06    Driver Version: 520.56.06    CUDA Version: 11.8     |\n"
      "|   0  NVIDIA GeForce ...  Off  | 00000000:01:00.0 Off |                  Off |\n"
      "| 30%   47C    P2   101W / 450W |    848MiB / 24564MiB |    100%      Default |\n"
      "| 30%   45C    P2    97W / 450W |    848MiB / 24564MiB |      3%      Default |\n");
  const auto uses = model::facts(job, model::kGpuUse);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0]->number("percent"), 100);
  EXPECT_EQ(uses[1]->number("percent"), 3);
  EXPECT_FALSE(model::all_gpus_are_busy(job));
}

TEST(GpuUse, IsReadFromQueriesAndSentences) {
  for (const char* text :
       {"0, 100 %, 118.21 W\n1, 98 %, 121.60 W", "nvidia-smi: GPU0 98% 131W, GPU1 100% 128W",
        "(all 8 GPUs at 100% util and ~110W)", "stuck here, both gpus 100%. mixed dataset",
        "GPU 0 and 1 both sit at 100 %, nothing is printed"}) {
    EXPECT_TRUE(model::all_gpus_are_busy(read(text))) << text;
  }
}

TEST(GpuUse, OfOneIdleGpuIsNotBusyAndTheNewestListCounts) {
  EXPECT_FALSE(model::all_gpus_are_busy(read("0, 100 %\n1, 0 %")));
  EXPECT_FALSE(model::all_gpus_are_busy(read("0, 100 %\n0, 0 %")));
  for (const char* text : {"Epoch 1: 100%|####| 47/47", "allocated 90% of all GPUs", "GPU util?",
                           "12, 100", "all gpus were bought for 100"}) {
    EXPECT_TRUE(read(text).facts.empty()) << text;
  }
}

TEST(GpuUse, IsReadFromTheColumnThatAHeadingNames) {
  const model::JobModel job = read(
      "node1: $ nvidia-smi --query-gpu=timestamp,name,utilization.gpu,power.draw --format=csv\n"
      "timestamp, name, utilization.gpu [%], power.draw [W]\n"
      "2026/06/19 02:41:17.871, NVIDIA GB10, 96 %, 15.21 W\n"
      "timestamp, name, utilization.gpu [%], power.draw [W]\n"
      "2026/06/19 02:41:18.894, NVIDIA GB10, 97 %, 14.87 W\n"
      "2026/06/19 02:41:18.894, NVIDIA GB10\n");
  const auto uses = model::facts(job, model::kGpuUse);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0]->number("percent"), 96);
  EXPECT_TRUE(model::all_gpus_are_busy(job));
  const model::JobModel indexed = read("index, utilization.gpu [%]\n3, 7 %\n");
  EXPECT_EQ(model::facts(indexed, model::kGpuUse).front()->number("gpu"), 3);
}

}  // namespace
}  // namespace ddpdoctor::imports
