// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/launched_call.h"

#include <gtest/gtest.h>

#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using tests::job;
using tests::JobBuilder;

constexpr const char* kSource = R"(import torch.distributed as dist
def share(x):
    dist.all_gather(parts, x)
    return x
def step(batch):
    if rare(batch):
        dist.broadcast(flag, 0)
    got = share(batch)
    return got.item()
def main():
    for batch in loader:
        step(batch)
        optimizer.step()
        seen = batch.tolist()
    dist.barrier()
)";

model::CallSite at(const char* function, int line) {
  return {.file = "/srv/train.py", .line = line, .function = function};
}

JobBuilder trained() {
  return job().ranks(2).source("/srv/train.py", kSource);
}

/// "all_gather train.py:3 8 12": the call and the lines on its call string.
std::string launched(const std::vector<model::CallSite>& callers, std::size_t frames = 9) {
  const model::JobModel model = trained().build();
  const auto found = launched_last(model, callers, frames, true);
  std::string out = found ? found->operation : "nothing";
  for (const model::CallSite& site : found ? found->callers : std::vector<model::CallSite>()) {
    out += " " + std::to_string(site.line);
  }
  return found && found->maybe ? out + " maybe" : out;
}

TEST(LaunchedCall, IsTheOneBeforeTheLineInFunctionsThatWereCalled) {
  EXPECT_EQ(launched({at("step", 9), at("main", 12)}), "all_gather 3 8 12");
}

TEST(LaunchedCall, IsLookedForInWhatTheCallersPassed) {
  // Optimizer.step() is not a call of step().
  EXPECT_EQ(launched({at("main", 14)}), "all_gather 3 8 12");
  EXPECT_EQ(launched({at("step", 6), at("main", 12)}, 1), "nothing");
}

TEST(LaunchedCall, MayHaveBeenPassedBy) {
  EXPECT_EQ(launched({at("share", 4), at("step", 8), at("main", 12)}), "all_gather 3 8 12");
  EXPECT_EQ(launched({at("step", 8), at("main", 12)}), "all_gather 3 8 12");
}

/// Waits in the driver at this line of Python.
std::string spins(const std::string& lines) {
  return "native:??@libcuda.so.1 | native:cudaStreamSynchronize@libcudart.so.12 | "
         "native:at::native::_local_scalar_dense_cuda@libtorch_cuda.so | " +
         lines;
}

TEST(LaunchedCall, IsWhatRanksAtDifferentLinesWaitIn) {
  const std::string behind = spins("py:step@/srv/train.py:9 | py:main@/srv/train.py:12");
  const std::string ahead =
      "py:barrier@/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:4 | "
      "py:main@/srv/train.py:15";
  JobBuilder builder = trained().stack(0, behind).stack(1, ahead);
  const model::JobModel model = builder.build();
  const std::vector<Standing> all = standings(model);
  EXPECT_EQ(all[0].activity, Activity::kCollective);
  EXPECT_TRUE(all[0].launched);
  EXPECT_EQ(all[0].call->operation, "all_gather");
  EXPECT_EQ(all[0].user.line, 3);
  const model::JobModel together = trained().stack(tests::kAll, behind).build();
  EXPECT_EQ(standings(together)[0].activity, Activity::kGpu);
  // A rank that is working may only be late.
  const model::JobModel late =
      trained().stack(0, behind).stack(1, "py:rare@/srv/train.py:6").state(1, 'R').build();
  EXPECT_EQ(standings(late)[0].activity, Activity::kGpu);
}

constexpr const char* kSymmetric = R"(import torch
import torch.distributed as dist
def step(x):
    torch.ops.symm_mem.one_shot_all_reduce(x, "sum", name)
    return x.item()
def main():
    for x in batches:
        step(x)
    dist.all_reduce(total)
    total.item()
)";

/// Rank 0 waits for its GPU in step(), rank 1 in the all_reduce behind the loop.
JobBuilder beside_a_recorder(std::int64_t calls_of_rank_0) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").source("/srv/a.py", kSymmetric);
  builder.history(tests::kAll, 1, 3).call(1, {.operation = "all_reduce", .sequence = 4});
  if (calls_of_rank_0 > 3) {
    builder.call(0,
                 {.operation = "all_reduce", .sequence = 4, .state = model::CallState::kStarted});
  }
  builder.stack(0, spins("py:step@/srv/a.py:5 | py:main@/srv/a.py:8"));
  builder.stack(1, spins("py:main@/srv/a.py:10"));
  return builder;
}

TEST(LaunchedCall, OfARankWithRecordsIsOneThatNoRecorderSees) {
  const model::JobModel model = beside_a_recorder(3).build();
  const std::vector<Standing> all = standings(model);
  EXPECT_EQ(all[0].activity, Activity::kCollective);
  ASSERT_TRUE(all[0].call);
  EXPECT_EQ(all[0].call->operation, "one_shot_all_reduce");
  EXPECT_EQ(all[0].user.line, 4);
  // The record shows in what its GPU is.
  const model::JobModel recorded = beside_a_recorder(4).build();
  EXPECT_NE(standings(recorded)[0].call ? standings(recorded)[0].call->operation : "",
            "one_shot_all_reduce");
}

TEST(LaunchedCall, IsNotTheOneThatAnotherRankStandsInAndThatMayBePassedBy) {
  const std::string dist =
      "py:broadcast@/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:4 | ";
  JobBuilder builder = job().ranks(2).source("/srv/a.py",
                                             "import torch.distributed as dist\ndef step(x):\n    "
                                             "if odd(x):\n        dist.broadcast(x, 0)\n"
                                             "    return x.item()\n");
  builder.stack(0, dist + "py:step@/srv/a.py:4").stack(1, spins("py:step@/srv/a.py:5"));
  const model::JobModel model = builder.build();
  EXPECT_EQ(standings(model)[1].activity, Activity::kGpu);
}

TEST(LaunchedCall, IsKnownByWhatItsNameMeans) {
  const auto is_known = [](const std::string& import, std::string_view callee) {
    const model::JobModel told = job().ranks(2).source("/srv/a.py", import + "\n").build();
    return operation_called(told.sources.at("/srv/a.py"), callee) != nullptr;
  };
  EXPECT_TRUE(is_known("import torch.distributed as dist", "dist.all_reduce"));
  EXPECT_TRUE(is_known("from torch.distributed import all_reduce as add", "add"));
  EXPECT_TRUE(is_known("import torch", "torch.distributed.all_reduce"));
  EXPECT_FALSE(is_known("import torch", "torch.broadcast"));
  EXPECT_FALSE(is_known("import numpy as dist", "dist.all_reduce"));
}

}  // namespace
}  // namespace ddpdoctor::graph
