// SPDX-License-Identifier: Apache-2.0
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

TEST(DdpModelsDiffer, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("ddp-models-differ", told().build())),
            essence(asked("ddp-models-differ", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
