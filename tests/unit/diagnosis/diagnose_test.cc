// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/detectors/detector.h"
#include "collector/diagnosis/diagnosis.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::diagnosis {
namespace {

using namespace ddpdoctor::tests;
using detectors::Confidence;

const std::string kInAllReduce =
    "native:__futex_abstimed_wait_common64@libc.so.6 | native:c10d::Work::wait@libtorch_cpu.so | "
    "py:all_reduce@/opt/site-packages/torch/distributed/distributed_c10d.py:2900 | "
    "py:main@/srv/train.py:21";
const std::string kInBatchWait =
    "native:__poll@libc.so.6 | py:get@/usr/lib/python3.11/multiprocessing/queues.py:113 | "
    "py:_MultiProcessingDataLoaderIter._try_get_data@/opt/site-packages/torch/utils/data/"
    "dataloader.py:1290 | py:main@/srv/train.py:20";
const std::string kWorkerStart =
    "py:_worker_loop@/opt/site-packages/torch/utils/data/_utils/worker.py:349 | "
    "py:main@/srv/train.py:20";

JobBuilder stuck_in_pool() {
  return job()
      .ranks(4)
      .command({"python", "train.py"})
      .stack(kAll, kInAllReduce)
      .stack(1, kInBatchWait)
      .process(
          {.role = model::Role::kDataLoaderWorker,
           .rank = 1,
           .pid = 777,
           .command = {"python", "train.py"},
           .threads = {
               {.stack =
                    "native:syscall@libc.so.6 | native:GOMP_parallel@libgomp.so.1 | "
                    "native:at::parallel_for@libtorch_cpu.so | py:__getitem__@/srv/data.py:5 | " +
                    kWorkerStart}}});
}

TEST(Diagnose, NamesTheMechanismOnceWhenEverybodyWaitsBecauseOfIt) {
  const auto told = stuck_in_pool().build();
  const Diagnosis diagnosis = diagnose(told);
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_EQ(diagnosis.findings[0].kind, "fork-after-openmp");
  EXPECT_EQ(diagnosis.findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(diagnosis.findings[0].waiting, model::RankSet({0, 2, 3}));
  EXPECT_EQ(diagnosis.verdict, Verdict::kHang);
}

TEST(Diagnose, SaysWhatIsProvenAlsoWhileSomebodyMoves) {
  const auto told = stuck_in_pool().stack_before(3, "py:main@/srv/train.py:19").build();
  EXPECT_EQ(diagnose(told).verdict, Verdict::kHang);
}

/// Ranks 0 and 1 launch on and on behind a call that rank 2 made differently.
JobBuilder runs_ahead(const std::string& of_rank_2, const std::string& line) {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl").progress(model::Progress::kMoving);
  builder.stack(kAll, "py:main@/srv/train.py:21").stack_before(kAll, "py:main@/srv/train.py:20");
  builder.history(kAll, 1, 5, "all_reduce", "main@/srv/train.py:20");
  for (const model::Rank rank : {0, 1, 2}) {
    builder.call(rank, {.operation = rank == 2 ? of_rank_2 : "all_reduce",
                        .sequence = 6,
                        .site = rank == 2 ? line : "main@/srv/train.py:20",
                        .state = model::CallState::kEnqueued,
                        .time = 10});
  }
  return builder;
}

TEST(Diagnose, SaysOfHostsThatRunAheadThatTheirCallsContradictEachOther) {
  const model::JobModel told = runs_ahead("barrier", "save@/srv/train.py:18").build();
  const Diagnosis diagnosis = diagnose(told);
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(diagnosis.findings[0].confidence, Confidence::kLikely);
  const model::JobModel same = runs_ahead("all_reduce", "main@/srv/train.py:20").build();
  EXPECT_TRUE(diagnose(same).findings.empty());
}

TEST(Diagnose, OfACutRecordingNothingThatRestsOnWhatIsLostIsCertain) {
  JobBuilder builder = stuck_in_pool();
  EXPECT_EQ(diagnose(builder.build()).findings.at(0).confidence, Confidence::kCertain);
  builder.fact("recording-cut", {});
  EXPECT_EQ(diagnose(builder.build()).findings.at(0).confidence, Confidence::kLikely);
}

TEST(Diagnose, DoubtsWhatAnEarlierLifeDiedOfWhileAScriptTriesAgain) {
  const auto told = [](bool again) {
    model::JobModel model = job()
                                .ranks(2)
                                .exited(1, 1)
                                .killed(0, 9)
                                .process({.role = model::Role::kLauncher, .pid = 7900})
                                .build();
    for (model::Observation& look : model.observations) {
      std::erase_if(look.processes, [again](const model::Process& process) {
        return process.pid == (again ? kLauncherPid : 7900);
      });
    }
    return model;
  };
  const model::JobModel over = told(false);
  ASSERT_FALSE(diagnose(over).findings.empty());
  EXPECT_NE(diagnose(over).findings[0].confidence, Confidence::kPossible);
  const model::JobModel starts = told(true);
  for (const detectors::Finding& finding : diagnose(starts).findings) {
    EXPECT_EQ(finding.confidence, Confidence::kPossible) << finding.kind;
  }
}

TEST(Diagnose, CallsAMovingJobRunning) {
  const auto told = job()
                        .ranks(2)
                        .stack(kAll, kInAllReduce)
                        .stack(0, "py:save@/srv/train.py:8")
                        .computing(0)
                        .build();
  const Diagnosis diagnosis = diagnose(told);
  for (const detectors::Finding& finding : diagnosis.findings) {
    EXPECT_EQ(finding.confidence, Confidence::kPossible) << finding.kind;
  }
  EXPECT_EQ(diagnosis.verdict, Verdict::kRunning);
}

TEST(Diagnose, CallsADeadRankInAnEndedJobACrash) {
  const auto told = job().ranks(2).killed(1, 11).exited(0, 1).ended().build();
  EXPECT_EQ(diagnose(told).verdict, Verdict::kCrash);
}

TEST(Diagnose, CallsItAHangWhenTheOthersWaitForARankThatRaised) {
  const auto told =
      job()
          .ranks(2)
          .stack(0,
                 "py:barrier@torch/distributed/distributed_c10d.py:9 | "
                 "py:main@/srv/train.py:30")
          .exited(1, 1)
          .log(1,
               "Traceback (most recent call last):\n  File \"/srv/train.py\", line 9, "
               "in load\nKeyError: 3\n")
          .build();
  const Diagnosis diagnosis = diagnose(told);
  EXPECT_EQ(diagnosis.verdict, Verdict::kHang);
  EXPECT_EQ(diagnosis.findings.at(0).kind, "rank-raised");
}

TEST(Diagnose, CallsAJobThatEndedWellFinished) {
  const auto told = job().ranks(2).exited(kAll, 0).ended().build();
  EXPECT_EQ(diagnose(told).verdict, Verdict::kFinished);
}

TEST(Diagnose, CallsErrorFilesACrashWhoeverIsToBlame) {
  model::JobModel told;
  told.ended = true;
  told.logs.push_back({.rank = 0,
                       .text = "Traceback (most recent call last):\nRuntimeError: "
                               "Connection closed by peer\n"});
  told.facts.push_back({.rank = 0, .pid = {}, .kind = "error-file", .fields = {}});
  EXPECT_EQ(diagnose(told).verdict, Verdict::kCrash);
}

TEST(Diagnose, CallsNoHangWhereNoJobWasSeen) {
  model::JobModel told;
  told.logs.push_back({.rank = {}, .text = "[5.1] NVRM: Xid (PCI:0000:4f:00): 79, x\n"});
  const Diagnosis diagnosis = diagnose(told);
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.verdict, Verdict::kUndetermined);
}

TEST(Diagnose, ListsEveryDetectorItAsked) {
  const auto told = job().ranks(1).build();
  EXPECT_EQ(diagnose(told).detectors_run.size(), detectors::catalog().size());
}

TEST(Diagnose, SurvivesAnEmptyModel) {
  const model::JobModel nothing;
  EXPECT_EQ(diagnose(nothing).verdict, Verdict::kUndetermined);
}

}  // namespace
}  // namespace ddpdoctor::diagnosis
