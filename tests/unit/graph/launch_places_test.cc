// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/launch_places.h"

#include <gtest/gtest.h>

#include "collector/graph/examination.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using tests::job;
using tests::JobBuilder;
using tests::kAll;

constexpr const char* kSource = R"(
from torch.nn.parallel import DistributedDataParallel
import torch.distributed as dist
def train(network):
    for batch in loader:
        loss = network(batch).sum()
        loss.backward()
        if worse(loss.item()):
            break
def main():
    network = DistributedDataParallel(model)
    train(network)
    dist.all_reduce(counted)
    print(counted.item())
)";

std::string spinning_at(const char* frames) {
  std::string stack = "native:??@libcuda.so.1 | native:cuStreamSynchronize@libcuda.so.1 | ";
  stack.append(frames);
  return stack;
}

/// Rank 1 has left the loop; the gradients of rank 0 are reduced without a line.
JobBuilder parted() {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").source("/srv/train.py", kSource);
  builder.stack(0, spinning_at("py:train@/srv/train.py:7 | py:main@/srv/train.py:11"));
  builder.stack(1, spinning_at("py:main@/srv/train.py:13"));
  builder.all_reduce(kAll, 1, 72).all_reduce(0, 2, 72).all_reduce(1, 2, 1, "main@/srv/train.py:12");
  return builder;
}

/// "6 11": the lines of a call, innermost first.
std::string lines_of(const model::JobModel& job, model::Rank rank, std::int64_t sequence) {
  const Examination examination = examine(job);
  std::string out;
  const model::CollectiveCall* call = examination.history.at("0", rank, sequence);
  for (const model::CallSite& site : call->callers) {
    out += (out.empty() ? "" : " ") + std::to_string(site.line);
  }
  return out;
}

TEST(LaunchPlaces, AreTheBackwardBeforeTheLineOfTheHost) {
  EXPECT_EQ(lines_of(parted().build(), 0, 2), "6 11");
}

TEST(LaunchPlaces, AreTheBackwardBeforeTheNextLineThatIsKnown) {
  EXPECT_EQ(lines_of(parted().build(), 1, 1), "6 11");
}

TEST(LaunchPlaces, AreTheLineItselfWhereALoopHasNoOtherBackward) {
  JobBuilder builder = parted();
  builder.stack(0,
                "native:??@libcuda.so.1 | py:backward@/v/site-packages/torch/_tensor.py:500 | "
                "py:train@/srv/train.py:6 | py:main@/srv/train.py:11");
  EXPECT_EQ(lines_of(builder.build(), 0, 2), "6 11");
}

TEST(LaunchPlaces, AreKnownAlsoWhereTheClassIsNamedThroughItsModule) {
  std::string source = kSource;
  source.replace(source.find("from torch.nn.parallel import DistributedDataParallel"), 53,
                 "from torch import nn");
  source.replace(source.find("DistributedDataParallel"), 23, "nn.parallel.DistributedDataParallel");
  JobBuilder builder = parted();
  builder.source("/srv/train.py", source);
  EXPECT_EQ(lines_of(builder.build(), 0, 2), "6 11");
}

TEST(LaunchPlaces, AreWhereAHostWaitsThatReadsAValueForItsNextCollective) {
  const std::string frames =
      "native:cudaStreamSynchronize@libcudart.so.13 | "
      "native:at::native::copy_kernel_cuda@libtorch_cuda.so | "
      "py:_object_to_tensor@/v/site-packages/torch/distributed/distributed_c10d.py:3209 | "
      "py:all_gather_object@/v/site-packages/torch/distributed/distributed_c10d.py:3300 | "
      "py:main@/srv/train.py:12";
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").source("/srv/train.py", kSource).all_reduce(kAll, 1, 72);
  builder.call(
      0,
      {.operation = "all_reduce", .sequence = 2, .state = model::CallState::kStarted, .time = 5});
  builder.call(1, {.operation = "all_gather",
                   .sequence = 2,
                   .site = "main@/srv/train.py:12",
                   .state = model::CallState::kStarted,
                   .time = 5});
  builder.stack(kAll, spinning_at(frames.c_str()));
  const model::JobModel model = builder.build();
  const Examination examination = examine(model);
  EXPECT_EQ(examination.standing(0)->user.line, 6);
  EXPECT_EQ(examination.standing(0)->call->operation, "all_reduce");
  EXPECT_EQ(examination.standing(1)->user.line, 12);
}

/// FSDP gathers parameters again in backward, on a thread of autograd.
TEST(LaunchPlaces, AreTheBackwardOfAShardedModelForItsGathersAndScatters) {
  std::string source = kSource;
  source.replace(source.find("from torch.nn.parallel import DistributedDataParallel"), 53,
                 "from torch.distributed.fsdp import fully_shard");
  source.replace(source.find("DistributedDataParallel(model)"), 30, "fully_shard(model)");
  JobBuilder builder = parted();
  builder.source("/srv/train.py", source);
  builder.call(0, {.operation = "all_gather_into_tensor", .sequence = 3, .time = 7});
  builder.call(0, {.operation = "reduce_scatter_tensor", .sequence = 4, .time = 8});
  builder.call(0, {.operation = "broadcast", .sequence = 5, .time = 9});
  builder.call(0, {.operation = "reduce_scatter_tensor", .sequence = 6, .time = 10});
  const model::JobModel model = builder.build();
  EXPECT_EQ(lines_of(model, 0, 6), "6 11");
  EXPECT_EQ(lines_of(model, 0, 5), "");  // of another thread, perhaps
  EXPECT_EQ(lines_of(model, 0, 4), "");
  JobBuilder of_ddp = parted();
  of_ddp.call(0, {.operation = "all_gather_into_tensor", .sequence = 3, .time = 7});
  EXPECT_EQ(lines_of(of_ddp.build(), 0, 3), "");
}

TEST(LaunchPlaces, StayUnknownWhereNoCallHasALine) {
  JobBuilder builder = parted();
  model::JobModel none = builder.build();
  for (model::CollectiveCall& call : none.collectives) {
    call.call_site = {};
    call.callers.clear();
  }
  EXPECT_EQ(lines_of(none, 0, 2), "") << "lines were not recorded";
}

TEST(LaunchPlaces, NeedNoWrapperInTheSource) {
  std::string source = kSource;
  source.replace(source.find("from torch.nn.parallel import DistributedDataParallel"), 53,
                 "from accelerate import Accelerator");
  source.replace(source.find("DistributedDataParallel"), 23, "accelerator.prepare");
  JobBuilder builder = parted();
  builder.source("/srv/train.py", source);
  EXPECT_EQ(lines_of(builder.build(), 0, 2), "6 11");
}

TEST(LaunchPlaces, AreThoseOfShardedModulesAndOfNoOtherOperation) {
  const auto told = [](const std::string& operation) {
    JobBuilder builder = parted();
    model::JobModel job = builder.build();
    for (model::CollectiveCall& call : job.collectives) {
      call.operation = call.call_site.known() ? call.operation : operation;
    }
    return lines_of(job, 0, 2);
  };
  EXPECT_EQ(told("reduce_scatter_tensor"), "6 11");
  EXPECT_EQ(told("all_gather_into_tensor"), "");  // nothing is scattered: no module is sharded
  EXPECT_EQ(told("broadcast"), "");
}

TEST(LaunchPlaces, StayUnknownWhereTheSourceRunsNoBackwardBefore) {
  std::string source = kSource;
  source.replace(source.find("loss.backward()"), 15, "loss.reduce_all()");
  JobBuilder builder = parted();
  builder.source("/srv/train.py", source);
  EXPECT_EQ(lines_of(builder.build(), 0, 2), "");
}

}  // namespace
}  // namespace ddpdoctor::graph
