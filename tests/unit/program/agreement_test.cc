// SPDX-License-Identifier: Apache-2.0
// A collective makes its value equal on all ranks, unless a rank may leave it out.
#include <gtest/gtest.h>

#include "collector/program/origin/origin.h"
#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

/// What `loss` comes from after an all_reduce under this test.
Source under(const std::string& test) {
  const Sources sources{{"train.py", source("import os, torch, torch.distributed as dist\n"
                                            "def push(x):\n    loss = x.mean()\n    " +
                                            test +
                                            "\n        dist.all_reduce(loss)\n    a()  # HERE\n"
                                            "def main():\n    for x in DataLoader(open('f')):\n"
                                            "        push(torch.rand(3))\n")}};
  const SourceText& text = sources.at("train.py");
  return origin_of("loss.item() < 1", {.text = &text, .line = line_with(text, "HERE")}, sources)
      .source;
}

TEST(Agreement, HoldsWhereEveryRankMakesTheCall) {
  EXPECT_EQ(name_of(under("if True:")), name_of(Source::kUniform));
  EXPECT_EQ(name_of(under("if dist.is_initialized():")), name_of(Source::kUniform));
  EXPECT_EQ(name_of(under("if int(os.environ['WORLD_SIZE']) > 1:")), name_of(Source::kUniform));
}

TEST(Agreement, DoesNotHoldBehindASwitchOrAnOwnTest) {
  EXPECT_EQ(name_of(under("if os.environ.get('SCOPE') == 'world':")), name_of(Source::kData));
  EXPECT_EQ(name_of(under("if x.max() > 3:")), name_of(Source::kData));
}

}  // namespace
}  // namespace ddpdoctor::program
