// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kGather =
    "native:c10d::Work::wait | "
    "py:all_gather_into_tensor@/v/torch/distributed/distributed_c10d.py:3100 | "
    "py:_pre_forward@/v/torch/distributed/fsdp/_runtime_utils.py:380 | ";

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4).stack({0, 1, 2},
                         kGather + "py:vision@/srv/train.py:8 | py:main@/srv/train.py:30");
  builder.stack(3, in("all_reduce", "py:main@/srv/train.py:31"));
  return builder;
}

TEST(SkippedShardedModule, NamesTheRankThatLeftItOut) {
  const Findings findings = asked("skipped-sharded-module", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{3}));
  EXPECT_NE(findings[0].fix.find("train.py:8"), std::string::npos);
}

TEST(SkippedShardedModule, IsSilentWhenTheOthersHaveLeftTheLoopOverTheBatches) {
  constexpr const char* kEpoch =
      "def main():\n    for batch in loader:\n        loss = model(batch)\n    dist.barrier()\n";
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kEpoch);
  builder.stack({0, 1, 2}, kGather + at("main", "loss = model"));
  builder.stack(3, in("barrier", at("main", "dist.barrier")));
  EXPECT_TRUE(asked("skipped-sharded-module", builder.build()).empty());
  const Findings uneven = asked("uneven-inputs", builder.build());
  ASSERT_EQ(uneven.size(), 1U);
  EXPECT_EQ(uneven[0].culprits, (model::RankSet{3}));
}

TEST(SkippedShardedModule, IsWhatDiffersInALoopThatAllGoRoundEquallyOften) {
  constexpr const char* kEarlyExit =
      "def forward(x):\n    for layer in layers:\n        x = layer(x)\n"
      "        if x.min() > sure:\n            break\n\n"
      "def main():\n    for i in range(50):\n        hits += forward(x)\n    "
      "dist.all_reduce(hits)\n";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kEarlyExit);
  builder.stack(kAll, kGather + at("forward", "x = layer") + " | " + at("main", "hits += forward"));
  builder.stack(1, in("all_reduce", at("main", "dist.all_reduce")));
  EXPECT_TRUE(asked("uneven-inputs", builder.build()).empty());
  const Findings findings = asked("skipped-sharded-module", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

constexpr const char* kTowers = R"(
from torch.distributed.fsdp import fully_shard
def encode(inputs):
    for key, x in inputs.items():
        towers[key](x)
def main():
    for batch in torch.utils.data.DataLoader(rows):
        encode(batch)
        loss.backward()
        opt.step()
)";

/// Both hosts have run on; rank 0 gathers a tower, rank 1 is in this operation of backward.
JobBuilder ran_on(const std::string& operation) {
  JobBuilder builder = job();
  const std::string forward = site("encode", "towers[key]") + " | " + site("main", "encode(");
  builder.ranks(2).backend("nccl").source(kTrain, kTowers);
  builder.history(kAll, 1, 2, "all_gather_into_tensor", forward)
      .history(kAll, 3, 4, "reduce_scatter_tensor", "")
      .history(kAll, 5, 8, "all_gather_into_tensor", forward);
  const auto enqueued = [&builder](model::Rank rank, const std::string& what,
                                   const std::string& where) {
    builder.call(rank, {.operation = what,
                        .sequence = 9,
                        .site = where,
                        .count = 64,
                        .state = model::CallState::kEnqueued,
                        .time = 90});
  };
  enqueued(0, "all_gather_into_tensor", forward);
  enqueued(1, operation, site("main", "loss.backward"));
  builder.stack(kAll, "native:??@libcuda.so.1 | native:cuStreamSynchronize@libcuda.so.1 | " +
                          at("main", "opt.step"));
  return builder;
}

TEST(SkippedShardedModule, IsShownByTheBackwardInWhichTheRecordsHaveTheOtherRank) {
  const Findings findings =
      asked("skipped-sharded-module", ran_on("reduce_scatter_tensor").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_TRUE(asked("collective-count", ran_on("reduce_scatter_tensor").build()).empty());
}

TEST(SkippedShardedModule, IsNotShownByAnotherCallOnThatLine) {
  EXPECT_TRUE(asked("skipped-sharded-module", ran_on("all_to_all").build()).empty());
}

TEST(SkippedShardedModule, ARankThatAsksForTheShardsItselfSkippedNoModule) {
  constexpr std::string_view kAsks =
      "py:synchronize@/opt/torch/cuda/__init__.py:5 | "
      "py:state_dict@/opt/torch/distributed/fsdp/fully_sharded_data_parallel.py:9 | "
      "py:main@/srv/train.py:40";
  JobBuilder builder = told();
  builder.stack(kAll, kGather + "py:vision@/srv/train.py:8 | py:main@/srv/train.py:30");
  builder.stack(1, std::string(kAsks));
  EXPECT_TRUE(asked("skipped-sharded-module", builder.build()).empty());
}

TEST(SkippedShardedModule, NamesTheConditionInTheGeneratorThatYieldsTheUnits) {
  constexpr const char* kSparse = R"(
class Sparse(nn.Module):
    def __init__(self, n):
        self.gate = nn.Linear(8, n)
        self.experts = nn.ModuleList(Expert() for _ in range(n))

    def route(self, x):
        choice = self.gate(x).argmax(-1)
        for i, expert in enumerate(self.experts):
            mask = choice == i
            if mask.any():
                yield mask, expert

    def forward(self, x):
        for mask, expert in self.route(x):
            out[mask] = expert(x[mask])
        return out

def main():
    for x, y in DataLoader(dataset):
        loss = model(x)
        loss.backward()

import torch.nn as nn
from torch.utils.data import DataLoader
)";
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kSparse);
  builder.stack(0, in_backward(at("main", "loss.backward()")));
  builder.stack(
      1, kGather + at("Sparse.forward", "expert(x[mask])") + " | " + at("main", "loss = model(x)"));
  builder
      .call(0, {.operation = "all_gather", .sequence = 3, .site = site("main", "loss.backward()")})
      .call(1, {.operation = "all_gather",
                .sequence = 3,
                .site = site("Sparse.forward", "expert(x[mask])") + " | " +
                        site("main", "loss = model(x)")});
  const Findings findings = asked("skipped-sharded-module", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_TRUE(std::any_of(findings[0].locations.begin(), findings[0].locations.end(),
                          [](const Location& one) { return one.line == 10; }));
  EXPECT_TRUE(asked("uneven-inputs", builder.build()).empty());
}

TEST(SkippedShardedModule, IsSilentWhenAllRunItOrTheJobMoves) {
  JobBuilder builder = told();
  builder.stack(kAll, kGather + "py:vision@/srv/train.py:8 | py:main@/srv/train.py:30");
  EXPECT_TRUE(asked("skipped-sharded-module", builder.build()).empty());
  EXPECT_TRUE(asked("skipped-sharded-module", moving(told().build())).empty());
}

TEST(SkippedShardedModule, IsOnlyPossibleWhenARankIsUnobserved) {
  EXPECT_TRUE(nothing_likely(asked("skipped-sharded-module", told().unobserved(0).build())));
}

TEST(SkippedShardedModule, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("skipped-sharded-module", told().build())),
            essence(asked("skipped-sharded-module", records_reversed(told().build()))));
}

/// Two ranks gather at two lines of one function, as in the records of a crashed job.
Findings asked_of_records(const char* kind, const std::string& first, const std::string& second) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain,
              "def forward(ids, pixels):\n    prefix = " + first + "\n    return " + second + "\n")
      .history(kAll, 1, 3)
      .call(0, {.operation = "all_gather_into_tensor",
                .sequence = 4,
                .site = site("forward", "prefix ="),
                .shape = std::vector<std::int64_t>{2880}})
      .call(1, {.operation = "all_gather_into_tensor",
                .sequence = 4,
                .site = site("forward", "return"),
                .shape = std::vector<std::int64_t>{3136}})
      .ended();
  return asked(kind, builder.build());
}

TEST(SkippedShardedModule, IsWhyGathersOfTwoLinesDifferInSize) {
  const Findings findings =
      asked_of_records("skipped-sharded-module", "vision(pixels) if pixels else None", "text(ids)");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_TRUE(
      asked_of_records("mismatched-shape", "vision(pixels) if pixels else None", "text(ids)")
          .empty());
  EXPECT_TRUE(asked_of_records("skipped-sharded-module", "dist.all_gather_into_tensor(a, b)",
                               "dist.all_gather_into_tensor(c, d)")
                  .empty());
}

TEST(SkippedShardedModule, NamesTheDrawOfEachRankThatSkipsLayers) {
  constexpr const char* kDrop =
      "import random\n\ndef forward(x):\n    for layer in layers:\n"
      "        if random.random() < 0.3:\n            continue\n        x = layer(x)\n\n"
      "def main():\n    for i in range(50):\n        forward(i).backward()\n";
  const auto told = [](const std::string& source) {
    JobBuilder builder = job();
    builder.ranks(2).source(kTrain, source);
    const std::string inside = at("forward", "x = layer") + " | " + at("main", "forward(i)");
    builder.stack(0, kGather + inside);
    builder.stack(1, in("all_reduce", at("main", "forward(i)")));
    builder.call(kAll, {.operation = "all_gather_into_tensor",
                        .site = "forward@/srv/train.py:7 | main@/srv/train.py:11"});
    return asked("skipped-sharded-module", builder.build());
  };
  const Findings drawn = told(kDrop);
  ASSERT_EQ(drawn.size(), 1U);
  EXPECT_EQ(drawn[0].locations.at(0).line, 5);
  EXPECT_NE(drawn[0].summary.find("random state"), std::string::npos) << drawn[0].summary;
}

TEST(SkippedShardedModule, NamesTheDrawInTheGeneratorThatYieldsTheLayers) {
  constexpr const char* kPick =
      "import random\n\ndef forward(x):\n    for layer in picked(layers):\n"
      "        x = layer(x)\n\ndef picked(all):\n    for one in all:\n"
      "        if random.random() > 0.3:\n            yield one\n\n"
      "def main():\n    for i in range(50):\n        forward(i).backward()\n";
  const auto told = [](std::string source) {
    JobBuilder builder = job();
    builder.ranks(2).source(kTrain, std::move(source));
    const std::string inside = at("forward", "x = layer") + " | " + at("main", "forward(i)");
    builder.stack(0, kGather + inside);
    builder.stack(1, in("all_reduce", at("main", "forward(i)")));
    builder.call(kAll, {.operation = "all_gather_into_tensor",
                        .site = "forward@/srv/train.py:5 | main@/srv/train.py:14"});
    return asked("skipped-sharded-module", builder.build());
  };
  const Findings drawn = told(kPick);
  ASSERT_EQ(drawn.size(), 1U);
  EXPECT_EQ(drawn[0].locations.at(0).line, 9) << drawn[0].summary;
  std::string equal = kPick;
  equal.replace(equal.find("random.random() > 0.3"), 21, "one.used");
  const Findings all_alike = told(equal);
  ASSERT_EQ(all_alike.size(), 1U);
  EXPECT_EQ(all_alike[0].summary.find("random"), std::string::npos);
}

/// Two ranks whose hosts wait for a value behind the backward. Rank 0 gathered the parameters of a
/// third unit when rank 1 made another call.
JobBuilder ran_ahead(const std::string& operation, const std::string& line) {
  constexpr const char* kSum =
      "def encode(x):\n    return sum(towers[key](x[key]) for key in x)\n\n"
      "def main():\n    for x in loader:\n        loss = encode(x)\n        loss.backward()\n"
      "        print(loss.item())\n";
  const std::string unit = site("encode", "return sum") + " | " + site("main", "loss = encode");
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").source(kTrain, kSum);
  builder.stack(kAll, "native:??@libcuda.so.1 | native:cuStreamSynchronize@libcuda.so.1 | " +
                          at("main", "print(loss.item())"));
  builder.history(kAll, 1, 3, "all_gather_into_tensor", unit)
      .history(kAll, 4, 5, "reduce_scatter_tensor", "")
      .history(kAll, 6, 7, "all_gather_into_tensor", unit)
      .call(0, {.operation = "all_gather_into_tensor",
                .sequence = 8,
                .site = unit,
                .state = model::CallState::kStarted})
      .call(1, {.operation = operation,
                .sequence = 8,
                .site = line,
                .state = model::CallState::kStarted})
      .call(kAll, {.operation = "reduce_scatter_tensor",
                   .sequence = 9,
                   .site = "",
                   .state = model::CallState::kStarted});
  return builder;
}

TEST(SkippedShardedModule, IsShownByRecordsWhereTheHostsHaveRunAhead) {
  const model::JobModel told = ran_ahead("reduce_scatter_tensor", "").build();
  const Findings findings = asked("skipped-sharded-module", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
  EXPECT_TRUE(asked("mismatched-op", told).empty());
}

TEST(SkippedShardedModule, IsNotWhatPartsThemWhereAnotherCallCameWithinTheForward) {
  const model::JobModel told = ran_ahead("broadcast", site("encode", "return sum")).build();
  EXPECT_TRUE(asked("skipped-sharded-module", told).empty());
}

TEST(SkippedShardedModule, IsNotWhatPartsThemWhereTheGatherBeginsTheNextIteration) {
  constexpr const char* kSaves =
      "import time\n\ndef main():\n    for x in loader:\n        loss = net(x)\n"
      "        loss.backward()\n        if time.monotonic() > due:\n            dist.barrier()\n";
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kSaves);
  builder.stack(0, kGather + at("main", "loss = net"));
  builder.stack(1, in("barrier", at("main", "dist.barrier")));
  builder.history(kAll, 1, 1, "all_gather_into_tensor", site("main", "loss = net"))
      .history(kAll, 2, 2, "reduce_scatter_tensor", site("main", "loss.backward()"))
      .call(0, {.operation = "all_gather_into_tensor",
                .sequence = 3,
                .site = site("main", "loss = net"),
                .state = model::CallState::kStarted})
      .call(1, {.operation = "barrier",
                .sequence = 3,
                .site = site("main", "dist.barrier"),
                .state = model::CallState::kStarted});
  EXPECT_TRUE(asked("skipped-sharded-module", builder.build()).empty());
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

TEST(SkippedShardedModule, IsNoneOfARankThatItsOwnDecisionLedElsewhere) {
  const auto told = [](const std::string& test, std::string_view kind) {
    JobBuilder builder = job();
    builder.ranks(3)
        .source(kTrain, "import os\n\ndef restore(path):\n  if " + test +
                            ":\n    return\n  dist.all_gather(out, path)\n\n"
                            "def main():\n  for batch in range(90):\n    loss = model(batch)\n"
                            "    loss.backward()\n    restore('last.pt')\n")
        .stack({1, 2}, kGather + at("main", "model(batch)"))
        .stack(0, in("all_gather",
                     at("restore", "dist.all_gather") + " | " + at("main", "restore('last.pt')")))
        .call({1, 2}, {.operation = "all_gather_into_tensor",
                       .sequence = 9,
                       .site = site("main", "model(batch)")});
    return asked(kind, builder.build());
  };
  const Findings parted = told("not os.path.exists(path)", "divergent-branch");
  ASSERT_EQ(parted.size(), 1U);
  EXPECT_EQ(parted[0].culprits, (model::RankSet{0}));
  EXPECT_TRUE(told("not os.path.exists(path)", "skipped-sharded-module").empty());
  EXPECT_EQ(told("False", "skipped-sharded-module").size(), 1U);
}

}  // namespace
}  // namespace ddpdoctor::detectors
