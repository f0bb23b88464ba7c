// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "cuda-implicit-sync";
const std::string kFrees =
    "native:cudaFree@libcudart.so.12 | py:empty_cache@/opt/site-packages/torch/cuda/memory.py:170 "
    "| py:step@/srv/train.py:9";

TEST(CudaImplicitSync, BlamesTheRankThatFrees) {
  const auto findings =
      asked(kKind, job().ranks(2).stack(kAll, kInBarrier).stack(0, kFrees).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

TEST(CudaImplicitSync, IsSilentWhenNobodyWaits) {
  EXPECT_TRUE(asked(kKind, job().ranks(2).stack(kAll, kFrees).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
