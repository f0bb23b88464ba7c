// SPDX-License-Identifier: Apache-2.0
// A collective in a forward that one rank runs again in its backward.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

const std::string kCheckpointFrame = "@/v/site-packages/torch/utils/checkpoint.py:1182";
const std::string kBackwardFrame = "py:backward@/v/site-packages/torch/autograd/__init__.py:395";

/// Rank 1 is in a gather of its layer, called by `through` below backward; rank 0 waits in
/// backward.
model::JobModel gathering(const std::string& test, const std::string& through) {
  const std::string source =
      "from torch.utils import checkpoint as remat\n\ndef shares(x):\n  dist.all_gather(out, x)\n\n"
      "def layer(x):\n  return x * shares(x)\n\ndef block(x, batch):\n  if " +
      test +
      ":\n    return remat.checkpoint(layer, x)\n  return layer(x)\n\n"
      "def main():\n  for batch in loader:\n    loss = block(model(batch), batch)\n"
      "    loss.backward()\n";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, source)
      .all_reduce({0, 2}, 7, 1024, site("main", "loss.backward"))
      .stack({0, 2}, in_backward(at("main", "loss.backward")))
      .stack(1, in("all_gather", at("shares", "all_gather") + " | " + at("layer", "shares(x)") +
                                     " | py:" + through + kCheckpointFrame + " | " +
                                     kBackwardFrame + " | " + at("main", "loss.backward")));
  return builder.build();
}

TEST(Recomputation, OfWhichOneRankDecidedForItselfIsDivergence) {
  const Findings findings =
      asked("divergent-branch", gathering("batch.numel() > 4096", "recompute_fn"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("`batch.numel() > 4096`"), std::string::npos);
  EXPECT_TRUE(std::any_of(findings[0].evidence.begin(), findings[0].evidence.end(),
                          [](const Evidence& one) {
                            return one.text.find("its backward repeats") != std::string::npos;
                          }));
  EXPECT_TRUE(asked("unused-parameters", gathering("True", "recompute_fn")).empty());
}

TEST(Recomputation, IsNotTheFirstForwardAndNotThatOfAnOption) {
  for (const auto& job :
       {gathering("batch.numel() > 4096", "checkpoint"), gathering("True", "recompute_fn")}) {
    for (const Finding& finding : asked("divergent-branch", job)) {
      EXPECT_EQ(finding.summary.find("4096"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
