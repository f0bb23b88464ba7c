// SPDX-License-Identifier: Apache-2.0
// A sharded module that a rank skipped, where the calls after it have its sizes.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kGather =
    "native:c10d::Work::wait | "
    "py:all_gather_into_tensor@/v/torch/distributed/distributed_c10d.py:3100 | "
    "py:_pre_forward@/v/torch/distributed/fsdp/_runtime_utils.py:380 | ";

constexpr const char* kFused = R"(
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
class Model(nn.Module):
    def fuse(self, hidden, batch):
        if batch.images is None:
            return hidden
        return hidden + self.tower(batch.images)
    def forward(self, batch):
        hidden = self.fuse(self.embed(batch.tokens), batch)
        for block in self.blocks:
            hidden = block(hidden)
        return hidden
class Tower(nn.Module):
    def __init__(self, depth):
        self.layers = nn.ModuleList(Mixer() for _ in range(depth))
    def forward(self, images):
        for layer in self.layers:
            images = layer(images)
        return images
@dataclass
class Batch:
    tokens: torch.Tensor
    images: torch.Tensor
def main():
    for tokens in torch.utils.data.DataLoader(rows):
        batch = Batch(tokens, torch.rand(3) if torch.rand(1) > 0.5 else None)
        shared(model(batch))
def shared(value):
    dist.all_reduce(value)
)";

TEST(SkippedUnit, IsFoundInCallsOfEqualSizesThatAreOneLineFurther) {
  const auto step = [](const std::string& path) {
    return path + " | " + site("main", "shared(model");
  };
  const std::string tower = step(site("Tower.forward", "images = layer") + " | " +
                                 site("Model.fuse", "return hidden + self.tower") + " | " +
                                 site("Model.forward", "hidden = self.fuse"));
  const std::string block = step(site("Model.forward", "hidden = block"));
  const std::string loss = step(site("shared", "dist.all_reduce"));
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kFused);
  const std::vector<std::string> round = {tower, tower, block, block, block, block};
  for (const model::Rank rank : {0, 1}) {
    std::int64_t sequence = 0;
    const auto add = [&](const std::string& operation, const std::string& where, bool over) {
      builder.call(rank,
                   {.operation = operation,
                    .sequence = ++sequence,
                    .site = where,
                    .count = 64,
                    .state = over ? model::CallState::kCompleted : model::CallState::kStarted});
    };
    for (const std::string& where : round) {
      add("all_gather_into_tensor", where, true);
    }
    add("all_reduce", loss, true);
    for (std::size_t i = rank == 0 ? 0 : 2; i < round.size() - (rank == 0 ? 1 : 0); ++i) {
      add("all_gather_into_tensor", round[i], sequence < 11);
    }
    if (rank == 1) {
      add("all_reduce", loss, false);
    }
  }
  builder.stack(
      0, kGather + at("Model.forward", "hidden = block") + " | " + at("main", "shared(model"));
  builder.stack(
      1, in("all_reduce", at("shared", "dist.all_reduce") + " | " + at("main", "shared(model")));
  const Findings findings = asked("skipped-sharded-module", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_TRUE(std::any_of(findings[0].locations.begin(), findings[0].locations.end(),
                          [](const Location& one) { return one.line == 6; }))
      << findings[0].summary;
  EXPECT_TRUE(asked("collective-count", builder.build()).empty());
}

/// Rank 0 is in backward, rank 1 gathers the parameters of a block. `first`: of the generator.
Findings left_out_by_a_generator(const std::string& first) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, R"(
import torch
from torch import nn
class Deep(nn.Module):
    def __init__(self, depth):
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
    def active(self):
)" + first + R"(        for block, keep in zip(self.blocks, torch.rand(4) > 0.5):
            if keep:
                yield block
    def forward(self, x):
        for block in self.active():
            x = block(x)
        return x
def main():
    for x in torch.utils.data.DataLoader(rows):
        loss = model(x)
        loss.backward()
)");
  builder.stack(0, kGather +
                       "py:_engine_run_backward@/v/site-packages/torch/autograd/graph.py:850 | "
                       "py:Tensor.backward@/v/site-packages/torch/_tensor.py:630 | " +
                       at("main", "loss.backward"));
  builder.stack(1, kGather + at("Deep.forward", "x = block") + " | " + at("main", "loss = model"));
  const std::string unit = site("Deep.forward", "x = block") + " | " + site("main", "loss = model");
  const std::string gather = "all_gather_into_tensor";
  builder.call({0, 1}, {.operation = gather, .sequence = 1, .site = unit, .count = 64});
  builder.call(1, {.operation = gather, .sequence = 2, .site = unit, .count = 64});
  builder.call(
      0, {.operation = gather, .sequence = 2, .site = site("main", "loss.backward"), .count = 32});
  return asked("skipped-sharded-module", builder.build());
}

TEST(SkippedUnit, IsLeftOutByATestInAGenerator) {
  for (const std::string first : {"",
                                  "        if not self.training:\n"
                                  "            yield from self.blocks\n"
                                  "            return\n"}) {
    const Findings findings = left_out_by_a_generator(first);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
    const int keep = first.empty() ? 8 : 11;
    EXPECT_TRUE(std::any_of(findings[0].locations.begin(), findings[0].locations.end(),
                            [keep](const Location& one) { return one.line == keep; }))
        << findings[0].locations.back().line;
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
