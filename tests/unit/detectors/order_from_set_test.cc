// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

std::string source_with(const std::string& over) {
  return "def reduce_all(values, groups):\n    names = " + over +
         "\n    for name in names:\n        dist.all_reduce(values[name], group=groups[name])\n\n"
         "def main():\n    reduce_all(values, groups)\n";
}

std::string here() {
  return at("reduce_all", "dist.all_reduce") + " | " + at("main", "    reduce_all(");
}

/// Two groups on one line; each rank is in a different one.
JobBuilder told(const std::string& over) {
  JobBuilder builder = job();
  builder.ranks(2).group("1", {0, 1}, "loss").group("2", {0, 1}, "accuracy");
  builder.source(kTrain, source_with(over));
  builder.stack(0, in("all_reduce", here(), "group=<ProcessGroup 1>"));
  builder.stack(1, in("all_reduce", here(), "group=<ProcessGroup 2>"));
  return builder;
}

TEST(OrderFromSet, NamesTheLoopAndTheSet) {
  const Findings findings = asked("order-from-set", told("set(values)").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_NE(findings[0].summary.find("a set"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].fix.find("sorted(names)"), std::string::npos) << findings[0].fix;
  EXPECT_NE(findings[0].confidence, Confidence::kPossible);
}

TEST(OrderFromSet, LeavesAnOrderThatTheSourceDoesNotProveToCollectiveOrder) {
  for (const char* over : {"list(values)", "sorted(set(values))", "order", "['a', 'b']"}) {
    EXPECT_TRUE(asked("order-from-set", told(over).build()).empty()) << over;
    EXPECT_EQ(asked("collective-order", told(over).build()).size(), 1U) << over;
  }
}

TEST(OrderFromSet, KnowsThatOneSeedGivesOneOrder) {
  JobBuilder builder = told("set(values)");
  builder.environment(kAll, "PYTHONHASHSEED", "0");
  EXPECT_TRUE(asked("order-from-set", builder.build()).empty());
  builder.environment(1, "PYTHONHASHSEED", "1");
  EXPECT_EQ(asked("order-from-set", builder.build()).size(), 1U);
  builder.environment(kAll, "PYTHONHASHSEED", "random");
  EXPECT_EQ(asked("order-from-set", builder.build()).size(), 1U);
}

TEST(OrderFromSet, SeesAnotherRootInTheRecords) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain,
                          "def main():\n    for name in owner.keys() - done:\n        "
                          "dist.broadcast(data[name], src=owner[name])\ndone = set()\nowner = {n: "
                          "1 for n in set(x)}\n");
  builder.broadcast({0, 2}, 1, 0, site("main", "broadcast"))
      .broadcast(1, 1, 1, site("main", "broadcast"))
      .stack(kAll, in("broadcast", at("main", "broadcast")));
  const Findings findings = asked("order-from-set", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1, 2}));
  EXPECT_FALSE(asked("mismatched-root", builder.build()).empty()) << "what it explains";
}

TEST(OrderFromSet, IsSilentWhereTheRanksAreInOneCall) {
  JobBuilder builder = told("set(values)");
  builder.stack(1, in("all_reduce", here(), "group=<ProcessGroup 1>"));
  EXPECT_TRUE(asked("order-from-set", builder.build()).empty());
  EXPECT_TRUE(asked("order-from-set", moving(told("set(values)").build())).empty());
}

TEST(OrderFromSet, IsSilentWhereAnotherLoopStandsBetween) {
  JobBuilder builder = job();
  builder.ranks(3).source(
      kTrain,
      "def main():\n    for fold in set(folds):\n        for step in range(9):\n            "
      "dist.broadcast(data, src=root())\n");
  builder.broadcast({0, 2}, 1, 0, site("main", "broadcast"))
      .broadcast(1, 1, 1, site("main", "broadcast"));
  EXPECT_TRUE(asked("order-from-set", builder.build()).empty());
}

TEST(OrderFromSet, MayBeTheCauseWhereAllWaitForTheirGpusInTheLoop) {
  for (const char* over : {"set(values)", "sorted(set(values))"}) {
    JobBuilder builder = job();
    builder.ranks(2).source(kTrain,
                            "import torch.distributed as dist\n\ndef share(values):\n"
                            "    for name in " +
                                std::string(over) +
                                ":\n        dist.all_reduce(values[name])\n"
                                "        print(values[name].item())\n");
    builder.stack(kAll,
                  "native:??@libcuda.so.1 | native:cudaStreamSynchronize@libcudart.so.12 | "
                  "native:at::native::_local_scalar_dense_cuda@libtorch_cuda.so | py:share@" +
                      std::string(kTrain) + ":6");
    const Findings findings = asked("order-from-set", builder.build());
    ASSERT_EQ(findings.size(), std::string_view(over) == "set(values)" ? 1U : 0U);
    if (!findings.empty()) {
      EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
      EXPECT_TRUE(findings[0].culprits.empty());
      EXPECT_EQ(findings[0].locations.at(0).line, 4);
      EXPECT_EQ(findings[0].locations.at(1).line, 5);
    }
  }
}

TEST(OrderFromSet, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("order-from-set", told("set(values)").build())),
            essence(asked("order-from-set", reversed(told("set(values)").build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
