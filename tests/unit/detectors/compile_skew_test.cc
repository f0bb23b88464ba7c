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

TEST(CompileSkew, KnowsTheCompilersOfLibraries) {
  for (const char* frames :
       {"py:run_ninja@/v/site-packages/flashinfer/jit/cpp_ext.py:9 | py:step@/srv/train.py:7",
        "py:run_ninja@flashinfer/jit/cpp_ext.py:9 | py:step@/srv/train.py:7",
        "py:_bench@/v/site-packages/triton/runtime/autotuner.py:9 | py:step@/srv/train.py:7",
        "py:wait@/usr/lib/python3.11/subprocess.py:1 | "
        "py:build@/v/site-packages/deep_gemm/jit/compiler.py:9 | py:step@/srv/train.py:7",
        "py:triton@/v/site-packages/torch/_inductor/async_compile.py:3 | "
        "py:<module>@torchinductor_me/tq/ctq.py:9 | py:step@/srv/train.py:7",
        "native:mlir::PassManager::run(mlir::Operation*) | py:step@/srv/train.py:7"}) {
    JobBuilder builder = told();
    builder.stack(0, frames);
    EXPECT_EQ(asked("compile-skew", builder.build()).size(), 1U) << frames;
  }
}

TEST(CompileSkew, IsSilentWhileCompiledCodeRuns) {
  for (const char* frames :
       {"py:call@/tmp/torchinductor_me/ab/cab.py:30 | "
        "py:__call__@/v/site-packages/torch/_inductor/codecache.py:906 | py:step@/srv/train.py:7",
        "py:run@/v/site-packages/torch/_inductor/compile_fx.py:490 | py:step@/srv/train.py:7",
        "py:runtime_wrapper@/v/site-packages/torch/_functorch/_aot_autograd/runtime_wrappers.py:3 "
        "| py:step@/srv/train.py:7"}) {
    JobBuilder builder = told();
    builder.stack(0, frames);
    EXPECT_TRUE(asked("compile-skew", builder.build()).empty()) << frames;
  }
}

TEST(CompileSkew, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("compile-skew", told().build())),
            essence(asked("compile-skew", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
