// SPDX-License-Identifier: Apache-2.0
#include "collector/model/progress.h"

#include <gtest/gtest.h>

#include "tests/support/job_builder.h"

namespace ddpdoctor::model {
namespace {

using tests::job;
using tests::kAll;

tests::JobBuilder standing() {
  return job().ranks(2).stack(kAll, "py:all_reduce@torch/x.py:9 | py:step@/srv/train.py:88");
}

TEST(Movement, IsStillWhenEveryMainThreadStandsOnTheSameLines) {
  const auto seen = movement(standing().build());
  EXPECT_EQ(seen.progress, Progress::kStill);
  EXPECT_EQ(seen.seconds_without_progress, 5.0);
}

TEST(Movement, IsMovingWhenOneRanksLinesChanged) {
  const auto model = standing().stack_before(1, "py:load@/srv/train.py:70").build();
  EXPECT_EQ(movement(model).progress, Progress::kMoving);
}

TEST(Movement, IsMovingWhenRecordersGainedEntriesOrACallIsYoungerThanTheFirstLook) {
  auto model = standing().all_reduce(kAll, 1).build();
  EXPECT_EQ(movement(model).progress, Progress::kStill);
  EXPECT_EQ(movement(model, true).progress, Progress::kMoving);
  model.collectives[0].time = model.observations[1].time - 1;
  EXPECT_EQ(movement(model).progress, Progress::kMoving);
}

TEST(Movement, WithoutRecordsAsksEveryLook) {
  auto model = standing().build();
  model.observations.insert(model.observations.begin(), model.observations.front());
  model.observations[0].time -= 1;
  for (Process& process : model.observations[0].processes) {
    for (Thread& thread : process.threads) {
      thread.run_count.reset();
    }
  }
  EXPECT_EQ(movement(model).progress, Progress::kStill);
  for (Process& process : model.observations[0].processes) {
    if (process.rank == 1) {
      process.threads[0].frames.front().line = 70;
    }
  }
  EXPECT_EQ(movement(model).progress, Progress::kMoving);
}

TEST(Movement, OfAProgramWithoutPythonIsThatOfItsOwnCode) {
  auto model = standing().build();
  for (Observation& look : model.observations) {
    for (Process& process : look.processes) {
      if (process.rank) {
        Thread& main = process.threads[0];
        main.run_count.reset();
        Frame step;
        step.function = "step";
        step.file = "/srv/job.c";
        step.line = 8;
        step.address = 64;
        main.frames = {Frame{}, step};
      }
    }
  }
  EXPECT_EQ(movement(model).progress, Progress::kStill);
  for (Process& process : model.observations[1].processes) {
    if (process.rank == 1) {
      process.threads[0].frames[1].address = 72;
    }
  }
  EXPECT_EQ(movement(model).progress, Progress::kMoving);
}

TEST(Movement, OfAProgramWithoutRanksIsThatOfItsPythonProcesses) {
  auto model = standing().build();
  for (Observation& look : model.observations) {
    for (Process& process : look.processes) {
      process.role = Role::kOther;
      process.rank.reset();
    }
  }
  EXPECT_EQ(movement(model).progress, Progress::kStill);
  model.observations[1].processes.back().threads[0].run_count = 99;
  model.observations[1].processes.back().threads[0].frames.front().line = 10;
  EXPECT_EQ(movement(model).progress, Progress::kMoving);
}

TEST(Movement, IsMovingWhenARankEnded) {
  auto model = standing().build();
  model.observations[1].processes[2].exit = Exit{.status = 1, .signal = {}};
  EXPECT_EQ(movement(model).progress, Progress::kMoving);
}

TEST(Movement, CountsFromTheNewestCollective) {
  auto model = standing().all_reduce(kAll, 1).build();
  model.collectives[0].time = model.observations[1].time - 300;
  EXPECT_EQ(movement(model).seconds_without_progress, 300.0);
}

TEST(Movement, IsUnknownAfterOneLookWithoutRecorders) {
  EXPECT_EQ(movement(standing().looked_once().build()).progress, Progress::kUnknown);
  EXPECT_EQ(movement(JobModel{}).progress, Progress::kUnknown);
}

TEST(Movement, IsStillAfterOneLookWhenRecordersAreQuietAndNobodyIsOnCpu) {
  auto model = standing().looked_once().all_reduce(kAll, 1).build();
  for (auto& call : model.collectives) {
    call.time = model.observations[0].time - 60;
  }
  EXPECT_EQ(movement(model).progress, Progress::kStill);
  model.observations[0].processes[1].threads[0].state = 'R';
  EXPECT_EQ(movement(model).progress, Progress::kUnknown);
}

TEST(Movement, IsUnknownWhenNoStackCouldBeRead) {
  auto model = job().ranks(2).build();
  for (auto& observation : model.observations) {
    for (auto& p : observation.processes) {
      p.threads[0].run_count.reset();
    }
  }
  EXPECT_EQ(movement(model).progress, Progress::kUnknown);
}

TEST(SamePlace, TrustsTheRunCountAboveTheLines) {
  auto model = standing().stack_before(1, "py:load@/srv/train.py:70").build();
  Process& before = model.observations[0].processes[2];
  const Process& now = model.observations[1].processes[2];
  EXPECT_EQ(same_place(before, now), false);
  before.threads[0].run_count = now.threads[0].run_count;
  EXPECT_EQ(same_place(before, now), true);
}

}  // namespace
}  // namespace ddpdoctor::model
