// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kConstructor =
    "native:c10d::Work::wait | "
    "py:_verify_param_shape_across_processes@/v/torch/distributed/utils.py:290 | "
    "py:DistributedDataParallel.__init__@/v/torch/nn/parallel/distributed.py:860 | "
    "py:main@/srv/train.py:12";

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(2)
      .stack(0, kConstructor)
      .exited(1, 1)
      .log(1,
           "Traceback ...\nRuntimeError: [1]: params[0] in this process with sizes [10, 4] appears "
           "not to match sizes of the same param in process 0.\n");
  return builder;
}

TEST(DdpModelsDiffer, ReadsDdpsOwnMessage) {
  const Findings findings = asked("ddp-models-differ", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(DdpModelsDiffer, IsSilentOnTheMessageOfACallThatTimedOut) {
  const std::string timeout =
      "[rank1]:[E606 09:09:08.1 ProcessGroupNCCL.cpp:757] [Rank 1] Watchdog caught collective "
      "operation timeout: WorkNCCL(SeqNum=1, OpType=ALLGATHER)\n";
  const std::string raised =
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"/srv/train.py\", line 12, in main\n"
      "[rank1]:     model = DDP(model)\n"
      "[rank1]:   File \"/v/site-packages/torch/distributed/utils.py\", line 286, in verify\n"
      "[rank1]:     return dist._verify_params_across_processes(group, tensors, logger)\n"
      "[rank1]: RuntimeError: DDP expects same model across all ranks, but Rank 1 has 51 params, "
      "while rank 0 has inconsistent 0 params.\n";
  const auto of = [](const std::string& text) {
    return asked("ddp-models-differ", job().ranks(2).log({}, text).ended().build());
  };
  ASSERT_EQ(of(raised + timeout).size(), 1U);
  EXPECT_EQ(of(raised + timeout)[0].locations.at(0).line, 12);
  EXPECT_TRUE(of(timeout + raised).empty());
}

TEST(DdpModelsDiffer, AccusesTheRankWhoseNumberDiffersNotThoseThatCompared) {
  std::string text;
  for (const auto* const rank : {"1", "2", "3"}) {
    const std::string prefix = "[rank" + std::string(rank) + "]: ";
    text += prefix + "Traceback (most recent call last):\n" + prefix +
            "  File \"/srv/train.py\", line 12, in main\n" + prefix + "    model = DDP(model)\n" +
            prefix + "RuntimeError: DDP expects same model across all ranks, but Rank " + rank +
            " has 400 params, while rank 0 has inconsistent 399 params.\n";
  }
  const auto model = job().ranks(4).log({}, text).ended().build();
  const Findings findings = asked("ddp-models-differ", model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].summary,
            "rank 0 has 399 parameters and ranks 1-3 have 400 when DistributedDataParallel wraps "
            "the model");
  EXPECT_TRUE(asked("rank-raised", model).empty());
}

TEST(DdpModelsDiffer, IsAGuessWithoutTheMessage) {
  EXPECT_TRUE(nothing_likely(
      asked("ddp-models-differ", job().ranks(2).stack(0, kConstructor).exited(1, 1).build())));
}

TEST(DdpModelsDiffer, IsSilentWhenAllConstructOrTheOtherIsUnobserved) {
  EXPECT_TRUE(asked("ddp-models-differ", job().ranks(2).stack(kAll, kConstructor).build()).empty());
  EXPECT_TRUE(
      asked("ddp-models-differ", job().ranks(2).stack(0, kConstructor).unobserved(1).build())
          .empty());
}

constexpr const char* kWraps = R"(from torch.nn.parallel import DistributedDataParallel as DDP
def main():
    model = DDP(build())
    dist.broadcast(size, 0)
)";

/// Calls of the constructor at one line: the number of parameters, their shapes, and their values.
JobBuilder built(int world, const std::string& at = "model = DDP") {
  JobBuilder builder = job();
  builder.ranks(world).source(kTrain, kWraps).ended();
  builder.call(kAll, {.operation = "all_gather",
                      .sequence = 1,
                      .site = site("main", at),
                      .count = 1,
                      .dtype = "int64"});
  return builder;
}

tests::CallStory sent(std::int64_t sequence, std::int64_t count, const std::string& dtype,
                      const std::string& at = "model = DDP") {
  return {.operation = "broadcast",
          .sequence = sequence,
          .site = site("main", at),
          .count = count,
          .dtype = dtype,
          .root = 0};
}

TEST(DdpModelsDiffer, SeesOtherShapesInTheCallsOfTheConstructor) {
  JobBuilder builder = built(3);
  builder.call({0, 2}, sent(2, 16, "int64")).call(1, sent(2, 14, "int64"));
  const model::JobModel told_job = builder.build();
  const Findings findings = asked("ddp-models-differ", told_job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_TRUE(asked("mismatched-shape", told_job).empty());
}

TEST(DdpModelsDiffer, AccusesNobodyOfTwoRanks) {
  JobBuilder builder = built(2);
  builder.call(0, sent(2, 16, "int64")).call(1, sent(2, 14, "int64"));
  const Findings findings = asked("ddp-models-differ", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].summary.find("rank 0 and rank 1 wrap different models"), std::string::npos)
      << findings[0].summary;
}

TEST(DdpModelsDiffer, SeesOtherBuffersAndTypesBehindTheShapes) {
  for (const auto& [count, dtype] :
       {std::pair<int, std::string>(784, "float32"), std::pair<int, std::string>(800, "float16")}) {
    JobBuilder builder = built(3);
    builder.call(kAll, sent(2, 16, "int64"))
        .call({0, 1}, sent(3, 800, "float32"))
        .call(2, sent(3, count, dtype));
    const model::JobModel told_job = builder.build();
    const Findings findings = asked("ddp-models-differ", told_job);
    ASSERT_EQ(findings.size(), 1U) << dtype;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
    EXPECT_TRUE(asked("mismatched-shape", told_job).empty());
    EXPECT_TRUE(asked("mismatched-dtype", told_job).empty());
  }
}

TEST(DdpModelsDiffer, LeavesCallsThatAreNotTheConstructorsAlone) {
  JobBuilder elsewhere = built(3);
  elsewhere.call({0, 2}, sent(2, 16, "int64", "dist.broadcast"))
      .call(1, sent(2, 14, "int64", "dist.broadcast"));
  EXPECT_TRUE(asked("ddp-models-differ", elsewhere.build()).empty());
  EXPECT_EQ(asked("mismatched-shape", elsewhere.build()).size(), 1U);
  JobBuilder alike = built(3);
  alike.call(kAll, sent(2, 16, "int64")).call(kAll, sent(3, 800, "float32"));
  EXPECT_TRUE(asked("ddp-models-differ", alike.build()).empty());
  JobBuilder values = built(2);
  values.call(0, sent(2, 16, "float32")).call(1, sent(2, 14, "float32"));  // broadcast_object_list
  EXPECT_TRUE(asked("ddp-models-differ", values.build()).empty());
}

TEST(DdpModelsDiffer, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("ddp-models-differ", told().build())),
            essence(asked("ddp-models-differ", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
