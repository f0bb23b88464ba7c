// SPDX-License-Identifier: Apache-2.0
// A collective makes its value equal on all ranks, unless a rank may leave it out.
#include <optional>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "collector/program/origin/called_lines.h"
#include "collector/program/origin/origin.h"
#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

/// What `loss` comes from after an all_reduce in line 5 under this test; `called`: the lines at
/// which the job called collectives, if known.
Source under(const std::string& test, std::optional<std::set<int>> called = std::nullopt) {
  const Sources sources{{"train.py", source("import os, torch, torch.distributed as dist\n"
                                            "def push(x):\n    loss = x.mean()\n    " +
                                            test +
                                            "\n        dist.all_reduce(loss)\n    a()  # HERE\n"
                                            "def main():\n    for x in DataLoader(open('f')):\n"
                                            "        push(torch.rand(3))\n")}};
  const SourceText& text = sources.at("train.py");
  set_called_lines(text, std::move(called));
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

// An option that is off: the call under it was never made.
TEST(Agreement, DidNotTakePlaceAtALineWithoutRecordedCalls) {
  EXPECT_EQ(name_of(under("if agree:")), name_of(Source::kUniform));
  EXPECT_EQ(name_of(under("if agree:", std::set{5, 9})), name_of(Source::kUniform));
  EXPECT_EQ(name_of(under("if agree:", std::set{9})), name_of(Source::kData));
  EXPECT_EQ(name_of(under("if agree:", std::set<int>{})), name_of(Source::kData));
}

}  // namespace
}  // namespace ddpdoctor::program
