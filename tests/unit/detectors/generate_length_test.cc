// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kGenerating =
    "native:c10d::Work::wait | "
    "py:all_gather_into_tensor@/v/torch/distributed/distributed_c10d.py:3100 | "
    "py:fetch_sub_module@/v/deepspeed/runtime/zero/partitioned_param_coordinator.py:300 | "
    "py:generate@/v/site-packages/transformers/generation/utils.py:2000 | py:main@/srv/train.py:30";

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(3)
      .stack({0, 1}, kGenerating)
      .stack(2, in("all_gather", "py:main@/srv/train.py:31"));
  return builder;
}

TEST(GenerateLength, NamesTheRankThatFinishedAlone) {
  const Findings findings = asked("generate-length", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_NE(findings[0].fix.find("synced_gpus"), std::string::npos);
}

constexpr const char* kOwnLoop = R"(
def unroll(model, ids):
    for _ in range(limit):
        logits = model(ids)
        ids = torch.cat([ids, sample(logits)])
        alive &= ids[-1] != EOS
        if not alive.any():
            break
    return ids

def main():
    for it in range(40):
        ids = unroll(model, prompt)
        loss = score(model(ids))
        loss.backward()
)";

TEST(GenerateLength, NamesTheTestThatEndsTheUsersOwnLoop) {
  const std::string gather =
      "native:c10d::Work::wait | "
      "py:all_gather_into_tensor@/v/torch/distributed/distributed_c10d.py:3100 | "
      "py:_pre_forward@/v/torch/distributed/fsdp/_fully_shard/_fsdp_state.py:380 | ";
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kOwnLoop);
  builder.stack(1, gather + at("unroll", "logits =") + " | " + at("main", "ids = unroll"));
  builder.stack(0, in("reduce_scatter_tensor", at("main", "loss.backward")));
  const Findings findings = asked("generate-length", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_NE(findings[0].fix.find("`not alive.any()`"), std::string::npos) << findings[0].fix;
}

TEST(GenerateLength, ShowsTheTestThatEndsALoopOfWhichTheCountIsEqual) {
  constexpr const char* kCounted = R"(
def unroll(model, ids, ends_after):
    for length in range(limit):
        ids = model(ids)
        if length + 1 >= ends_after:
            break
    return ids

def main():
    for it in range(40):
        loss = score(unroll(model, prompt, 3))
        loss.backward()
)";
  const std::string gather =
      "native:c10d::Work::wait | "
      "py:all_gather_into_tensor@/v/torch/distributed/distributed_c10d.py:3100 | "
      "py:_pre_forward@/v/torch/distributed/fsdp/_fully_shard/_fsdp_state.py:380 | ";
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kCounted);
  builder.stack(1, gather + at("unroll", "ids = model") + " | " + at("main", "loss = score"));
  builder.stack(0, in("reduce_scatter_tensor", at("main", "loss.backward")));
  const Findings findings = asked("generate-length", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(std::any_of(findings[0].locations.begin(), findings[0].locations.end(),
                          [](const Location& one) { return one.line == 4; }));
}

/// The hosts of a GPU job: both wait for a value further on, and the records show where they
/// diverged.
TEST(GenerateLength, IsSeenInTheRecordsOfHostsThatRanOn) {
  const std::string on_gpu = "native:cuEventSynchronize@libcuda.so.1 | ";
  const std::string later = site("main", "loss =");
  JobBuilder builder = job();
  builder.backend("nccl").ranks(2).source(kTrain, kOwnLoop);
  builder.stack(kAll, on_gpu + at("unroll", "if not alive") + " | " + at("main", "ids = unroll"));
  builder
      .call(1, {.operation = "all_gather",
                .sequence = 7,
                .site = site("unroll", "logits =") + " | " + site("main", "ids = unroll"),
                .state = model::CallState::kStarted})
      .call(1, {.operation = "all_gather", .sequence = 8, .site = later})
      .call(0, {.operation = "all_reduce",
                .sequence = 7,
                .site = later,
                .state = model::CallState::kStarted})
      .call(0, {.operation = "all_gather", .sequence = 8, .site = later});
  const Findings findings = asked("generate-length", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
}

TEST(GenerateLength, IsSilentWhenAllGenerateOrTheJobMoves) {
  JobBuilder builder = told();
  builder.stack(2, kGenerating);
  EXPECT_TRUE(asked("generate-length", builder.build()).empty());
  EXPECT_TRUE(asked("generate-length", moving(told().build())).empty());
}

TEST(GenerateLength, IsOnlyPossibleWhenARankIsUnobserved) {
  EXPECT_TRUE(nothing_likely(asked("generate-length", told().unobserved(0).build())));
}

TEST(GenerateLength, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("generate-length", told().build())),
            essence(asked("generate-length", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
