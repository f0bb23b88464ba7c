// SPDX-License-Identifier: Apache-2.0
#include "tests/support/job_builder.h"

#include <gtest/gtest.h>

#include "collector/model/questions.h"

namespace ddpdoctor::tests {
namespace {

using model::CallState;
using model::Progress;

constexpr const char* kTrain = R"(
import torch.distributed as dist
def evaluate():
    dist.barrier()
)";

TEST(JobBuilder, TellsTwoEqualObservationsOfAWorldOnGloo) {
  const auto model = job().ranks(2).build();
  EXPECT_EQ(model.world_size, 2);
  ASSERT_EQ(model.observations.size(), 2U);
  EXPECT_EQ(model::ranks_seen(model), (model::RankSet{0, 1}));
  EXPECT_EQ(model.groups.at(0).name, "default_pg");
  EXPECT_EQ(model.progress, Progress::kStill);
  EXPECT_EQ(model::rank_process(model, 1)->pid, pid_of(1));
}

TEST(JobBuilder, ReadsFramesWithLocalsNativeFramesAndLinesFoundByText) {
  const auto model = job()
                         .ranks(2)
                         .source("/srv/train.py", kTrain)
                         .stack(kAll,
                                "native:gloo::barrier@libtorch_cpu.so | "
                                "py:barrier{group=0; async_op=False}@torch/x.py:12 | "
                                "py:evaluate@/srv/train.py~dist.barrier()")
                         .build();
  const model::Thread& thread = *model::main_thread(*model::rank_process(model, 1));
  ASSERT_EQ(thread.frames.size(), 3U);
  EXPECT_EQ(thread.frames[0].function, "gloo::barrier");
  EXPECT_EQ(thread.frames[0].module, "libtorch_cpu.so");
  EXPECT_EQ(thread.frames[1].function, "barrier");
  EXPECT_EQ(thread.frames[1].line, 12);
  ASSERT_EQ(thread.frames[1].locals.size(), 2U);
  EXPECT_EQ(thread.frames[1].locals[1].second, "False");
  EXPECT_EQ(thread.frames[2].line, 3);
  EXPECT_EQ(model::source_line(model, "/srv/train.py", 3), "    dist.barrier()");
}

TEST(JobBuilder, CompletesTheCallsThatAllMembersJoined) {
  const auto model =
      job().ranks(2).all_reduce(kAll, 1).all_reduce({0}, 2, 8, "step@/t.py:3").build();
  ASSERT_EQ(model.collectives.size(), 3U);
  EXPECT_EQ(model.collectives[0].state, CallState::kCompleted);
  EXPECT_EQ(model.collectives[2].state, CallState::kStarted);
  EXPECT_EQ(model.collectives[2].call_site.line, 3);
  EXPECT_EQ(model.collectives[2].call_site.function, "step");
}

TEST(JobBuilder, MovesWhoeverWasElsewhereBefore) {
  const auto model =
      job().ranks(2).python(1, "/t.py", 5, "f").stack_before(1, "py:g@/t.py:9").build();
  EXPECT_EQ(model.progress, Progress::kMoving);
  EXPECT_EQ(model.observations[0].processes[2].threads[0].frames[0].line, 9);
  EXPECT_EQ(model.observations[1].processes[2].threads[0].frames[0].line, 5);
  EXPECT_EQ(job().ranks(1).looked_once().build().progress, Progress::kUnknown);
}

TEST(JobBuilder, KnowsTheDeadTheAbsentAndTheUnobserved) {
  const auto model =
      job().ranks(4).killed(1, 9).absent(2).unobserved(3).worker(0, "py:f@/t.py:1").build();
  EXPECT_EQ(model::rank_process(model, 1)->exit->signal, 9);
  EXPECT_EQ(model::rank_process(model, 2), nullptr);
  EXPECT_EQ(model.coverage.unobserved_ranks, model::RankSet{3});
  EXPECT_EQ(model::process(model, worker_pid(0, 0))->ppid, pid_of(0));
}

}  // namespace
}  // namespace ddpdoctor::tests
