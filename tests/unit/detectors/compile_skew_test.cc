// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(2).stack(1, in("all_reduce", "py:main@/srv/train.py:20"));
  builder.stack(0,
                "py:compile_fx_inner@/v/torch/_inductor/compile_fx.py:9 | py:step@/srv/train.py:7");
  return builder;
}

TEST(CompileSkew, NamesTheRankThatCompiles) {
  const Findings findings = asked("compile-skew", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
}

TEST(CompileSkew, IsNeverMoreThanPossible) {
  EXPECT_TRUE(nothing_likely(asked("compile-skew", told().build())));
  EXPECT_TRUE(nothing_likely(asked("compile-skew", moving(told().build()))));
}

TEST(CompileSkew, IsSilentWhenAllCompileOrTheWaitingRankIsUnobserved) {
  EXPECT_TRUE(asked("compile-skew", job()
                                        .ranks(2)
                                        .stack(kAll,
                                               "py:compile_fx_inner@/v/torch/_inductor/"
                                               "compile_fx.py:9 | py:step@/srv/train.py:7")
                                        .build())
                  .empty());
  EXPECT_TRUE(asked("compile-skew", told().unobserved(1).build()).empty());
}

TEST(CompileSkew, IsSilentWhileTheCompilerIsOnlyImported) {
  JobBuilder builder = told();
  builder.stack(0, "py:<module>@/v/torch/_dynamo/convert_frame.py:9 | py:step@/srv/train.py:7");
  EXPECT_TRUE(asked("compile-skew", builder.build()).empty());
}

TEST(CompileSkew, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("compile-skew", told().build())),
            essence(asked("compile-skew", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
