// SPDX-License-Identifier: Apache-2.0
#include "collector/diagnosis/stack_diff.h"

#include <gtest/gtest.h>

#include "tests/support/job_builder.h"

namespace ddpdoctor::diagnosis {
namespace {

using namespace ddpdoctor::tests;

TEST(StackDiff, PartsWhereTheRanksPart) {
  const auto told =
      job()
          .ranks(4)
          .stack(kAll,
                 "py:backward@/opt/torch/_tensor.py:581 | py:fit@/srv/train.py:30 | "
                 "py:main@/srv/train.py:40")
          .stack(
              2,
              "py:evaluate@/srv/train.py:20 | py:fit@/srv/train.py:31 | py:main@/srv/train.py:40")
          .build();
  const StackDiff diff = stack_diff(told);
  ASSERT_EQ(diff.roots.size(), 1u);
  EXPECT_EQ(diff.roots[0].frame.function, "main");
  EXPECT_EQ(diff.roots[0].ranks, model::RankSet({0, 1, 2, 3}));
  ASSERT_EQ(diff.roots[0].children.size(), 2u);
  EXPECT_EQ(diff.roots[0].children[0].ranks, model::RankSet({0, 1, 3}));
  EXPECT_EQ(diff.roots[0].children[1].ranks, model::RankSet({2}));
  EXPECT_EQ(diff.roots[0].children[1].frame.line, 31);
}

TEST(StackDiff, FoldsTheInterpreterAndKeepsWhatTheInnermostLineCalled) {
  const auto told =
      job()
          .ranks(1)
          .stack(0,
                 "native:gloo::barrier@libtorch_cpu.so | "
                 "native:pybind11::cpp_function::dispatcher@libtorch_python.so | "
                 "native:_PyEval_EvalFrameDefault@python3.11 | py:barrier@/opt/torch/c10d.py:1 | "
                 "native:_PyEval_Vector@python3.11 | py:main@/srv/train.py:40 | "
                 "native:__libc_start_main@libc.so.6")
          .build();
  const StackDiff diff = stack_diff(told);
  ASSERT_EQ(diff.roots.size(), 1u);
  EXPECT_EQ(diff.roots[0].frame.function, "main");
  const StackNode& barrier = diff.roots[0].children.at(0);
  EXPECT_EQ(barrier.frame.function, "barrier");
  ASSERT_EQ(barrier.children.size(), 1u);
  EXPECT_EQ(barrier.children[0].frame.function, "gloo::barrier");
  EXPECT_TRUE(barrier.children[0].children.empty());
}

TEST(StackDiff, LeavesOutWorkersAndRanksWithoutAStack) {
  const auto told = job()
                        .ranks(2)
                        .stack(0, "py:main@/srv/train.py:40")
                        .absent(1)
                        .worker(0, "py:work@/srv/data.py:3")
                        .build();
  const StackDiff diff = stack_diff(told);
  ASSERT_EQ(diff.roots.size(), 1u);
  EXPECT_EQ(diff.roots[0].ranks, model::RankSet({0}));
}

TEST(StackDiff, IsEmptyWithoutAnObservation) {
  EXPECT_TRUE(stack_diff(model::JobModel{}).roots.empty());
}

}  // namespace
}  // namespace ddpdoctor::diagnosis
