// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def evaluate(model):
    return model(images)

def main():
    for step in range(100):
        loss = model(batch)
        loss.backward()
        if rank == 0:
            evaluate(model)
        dist.barrier()
)";

const std::string kEvaluate =
    at("evaluate", "model(images)") + " | " + at("main", "    evaluate(model)");

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kSource)
      .stack(kAll, in("barrier", at("main", "barrier")))
      .stack(0, in_ddp_forward(kEvaluate));
  return builder;
}

TEST(Rank0OnlyDdpForward, NamesTheLineOfTheForward) {
  const Findings findings = asked("rank0-only-ddp-forward", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 2);
  EXPECT_NE(findings[0].fix.find("model.module"), std::string::npos);
}

TEST(Rank0OnlyDdpForward, WalksBackWhenTheBroadcastMetTheOthersNextForward) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kSource);
  const std::string evaluating =
      site("evaluate", "model(images)") + " | " + site("main", "    evaluate(model)");
  builder.broadcast(kAll, 1, 0, site("main", "model(batch)"))
      .broadcast(kAll, 2, 0, site("main", "model(batch)"));
  builder.all_reduce(kAll, 3, 8, site("main", "backward"));
  builder.broadcast(0, 4, 0, evaluating).broadcast(0, 5, 0, evaluating);
  builder.broadcast({1, 2}, 4, 0, site("main", "model(batch)"))
      .broadcast({1, 2}, 5, 0, site("main", "model(batch)"));
  builder.broadcast(0, 6, 0, site("main", "model(batch)"))
      .all_reduce({1, 2}, 6, 8, site("main", "backward"));
  builder.stack(0, in_ddp_forward(at("main", "model(batch)")))
      .stack({1, 2}, in_backward(at("main", "backward")));
  const Findings findings = asked("rank0-only-ddp-forward", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 2);
}

/// Rank 0 reads a value from its GPU behind the forward; `buffers`: what the model's class makes.
Findings behind_its_gpu(const std::string& buffers) {
  const std::string source = R"(import torch.nn as nn
import torch.distributed as dist
import torch.multiprocessing as mp
class Net(nn.Module):
    def __init__(self):
        self.norm = BUFFERS
def main(rank, size):
    model = nn.parallel.DistributedDataParallel(Net().cuda(rank), device_ids=[rank])
    for epoch in range(5):
        for batch in loader:
            model(batch).sum().backward()
        if rank == 0:
            for batch in held_out:
                out = model(batch)
                total += out.mean().item()
        dist.barrier()
mp.spawn(main, nprocs=2, args=(2,))
)";
  JobBuilder builder = job();
  builder.ranks(2).source("/srv/train.py",
                          std::string(source).replace(source.find("BUFFERS"), 7, buffers));
  builder.backend("nccl").state(0, 'R');
  builder.stack(0,
                "native:??@libcuda.so.1 | native:cudaStreamSynchronize@libcudart.so.12 | "
                "native:at::native::_local_scalar_dense_cuda@libtorch_cuda.so | "
                "py:main@/srv/train.py:15");
  builder.stack(1, in("barrier", "py:main@/srv/train.py:16"));
  return asked("rank0-only-ddp-forward", builder.build());
}

// A host runs ahead of its GPU: what the value waits for is the broadcast of the forward before it.
TEST(Rank0OnlyDdpForward, IsTheLastCallOfAHostThatWaitsForItsGpu) {
  const Findings findings = behind_its_gpu("nn.BatchNorm2d(8)");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 14);
  EXPECT_TRUE(behind_its_gpu("nn.Linear(8, 8)").empty()) << "nothing is broadcast";
}

TEST(Rank0OnlyDdpForward, IsNoBroadcastOfAnOptimizersState) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, R"(
def main():
    for step in range(100):
        loss.backward()
        if rank == 0:
            optimizer.consolidate_state_dict(to=0)
        dist.barrier()
)");
  builder.all_reduce(kAll, 1, 8, site("main", "backward"))
      .broadcast(0, 2, 0, site("main", "consolidate"))
      .barrier({1, 2}, 2, site("main", "barrier"));
  builder.stack(0, in("broadcast", at("main", "consolidate")))
      .stack({1, 2}, in("barrier", at("main", "barrier")));
  EXPECT_TRUE(asked("rank0-only-ddp-forward", builder.build()).empty());
  EXPECT_EQ(asked("rank-conditional-collective", builder.build()).size(), 1U);
}

TEST(Rank0OnlyDdpForward, IsSilentOnTheHealthyTwin) {
  JobBuilder builder = told();
  builder.stack(kAll, in_ddp_forward(at("main", "model(batch)")));
  EXPECT_TRUE(asked("rank0-only-ddp-forward", builder.build()).empty());
  EXPECT_TRUE(asked("rank0-only-ddp-forward", moving(told().build())).empty());
}

TEST(Rank0OnlyDdpForward, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = told();
  builder.unobserved(1);
  EXPECT_TRUE(nothing_likely(asked("rank0-only-ddp-forward", builder.build())));
}

TEST(Rank0OnlyDdpForward, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("rank0-only-ddp-forward", told().build())),
            essence(asked("rank0-only-ddp-forward", records_reversed(told().build()))));
}

TEST(Rank0OnlyDdpForward, IsToldByStacksAlone) {
  const std::string forward =
      "py:_sync_buffers@/opt/site-packages/torch/nn/parallel/distributed.py:2110 | "
      "py:_pre_forward@/opt/site-packages/torch/nn/parallel/distributed.py:1570 | "
      "py:forward@/opt/site-packages/torch/nn/parallel/distributed.py:1666 | ";
  const Findings findings =
      asked("rank0-only-ddp-forward",
            job()
                .ranks(2)
                .stack(0, forward + "py:validate@/srv/t.py:80 | py:main@/srv/t.py:99")
                .stack(1,
                       "py:barrier@/opt/site-packages/torch/distributed/distributed_c10d.py:4830 | "
                       "py:main@/srv/t.py:101")
                .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 80);
}

/// Both ranks train; rank 1 is in the forward of epoch `epoch`, rank 0 in a call after the steps of
/// its first epoch.
model::JobModel told_of_epochs(std::int64_t epoch, bool recorded) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, R"(
def epoch_end(self):
    dist.all_reduce(total)

def main():
    for epoch in range(3):
        for x in batches:
            loss = model(x)
            loss.backward()
        track.epoch_end()
)");
  const std::string end = "        track.epoch_end()";
  std::int64_t next = 1;
  for (int i = 0; recorded && i < 3; ++i) {
    builder.broadcast(kAll, next++, 0, site("main", "model(x)"));
    builder.all_reduce(kAll, next++, 8, site("main", "backward"));
  }
  if (recorded) {
    builder.broadcast(1, next, 0, site("main", "model(x)"))
        .all_reduce(0, next, 2, site("epoch_end", "all_reduce") + " | " + site("main", end));
  }
  builder.stack(1, in_ddp_forward(at("main", "model(x)")))
      .stack(0, in("all_reduce", at("epoch_end", "all_reduce") + " | " + at("main", end)));
  model::JobModel out = builder.build();
  put_loops(out, 0, "main", {over("range", 1, 3)});
  put_loops(out, 1, "main", {over("range", epoch, 3), over("list", 1, 3)});
  return out;
}

TEST(Rank0OnlyDdpForward, IsNoForwardThatTheOthersMadeAsWell) {
  EXPECT_TRUE(asked("rank0-only-ddp-forward", told_of_epochs(2, true)).empty());
  EXPECT_TRUE(asked("rank0-only-ddp-forward", told_of_epochs(2, false)).empty());
}

TEST(Rank0OnlyDdpForward, IsNoObjectThatALibraryBroadcasts) {
  constexpr const char* kTesting =
      "def main():\n  if rank == 0:\n    trainer.test(model)\n  dist.broadcast(best)\n";
  for (const bool object : {true, false}) {
    JobBuilder builder = job();
    builder.ranks(2).source(kTrain, kTesting);
    builder.call(0, {.operation = "broadcast",
                     .sequence = 1,
                     .site = site("main", "trainer.test"),
                     .dtype = object ? "int64" : "float32"});
    builder.call(0, {.operation = "broadcast",
                     .sequence = 2,
                     .site = site("main", "trainer.test"),
                     .dtype = object ? "uint8" : "float32"});
    builder.call(1, {.operation = "all_reduce", .sequence = 1, .site = site("main", "best")});
    const model::JobModel job = builder.build();
    EXPECT_EQ(asked("rank0-only-ddp-forward", job).size(), object ? 0U : 1U);
    EXPECT_EQ(asked("rank-conditional-collective", job).size(), object ? 1U : 0U);
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
