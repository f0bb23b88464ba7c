// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/viewer/story.h"
#include "viewer/formats/text_parts.h"
#include "viewer/render.h"
#include "viewer/stack_folding.h"

namespace ddpdoctor::viewer {
namespace {

using tests::diagnosis_of;
using tests::hung_job;
using tests::kAll;

std::string stacks(const model::JobModel& job, const TextOptions& options = {}) {
  const auto diagnosis = diagnosis_of(job, {});
  return stack_block(diagnosis, file_names(diagnosis), options);
}

TEST(Stacks, RanksThatDifferOnlyInsideALibraryAreOneLine) {
  const auto job = tests::job()
                       .ranks(3)
                       .stack(kAll,
                              "native:epoll_wait | "
                              "py:all_reduce@/x/site-packages/torch/distributed/"
                              "distributed_c10d.py:1 | py:step@/srv/t.py:8")
                       .stack(1,
                              "native:pthread_cond_wait | "
                              "py:all_reduce@/x/site-packages/torch/distributed/"
                              "distributed_c10d.py:1 | py:step@/srv/t.py:8")
                       .build();
  EXPECT_EQ(stacks(job),
            "stacks of 3 ranks (4 processes, 4 threads; no thread was paused), by rank\n  "
            "step t.py:8 · "
            "all_reduce …   0-2\n");
}

TEST(Stacks, WhereAFrameworkLeadsRanksApartIsShown) {
  const std::string fit =
      "py:Loop.run@/x/site-packages/lightning/loops/epoch.py:153 | "
      "py:Trainer.fit@/x/site-packages/lightning/trainer.py:9 | py:main@/srv/t.py:8";
  const std::string validates =
      "py:Loop.end@/x/site-packages/lightning/loops/epoch.py:406 | "
      "py:Loop.run@/x/site-packages/lightning/loops/epoch.py:154 | "
      "py:Trainer.fit@/x/site-packages/lightning/trainer.py:9 | py:main@/srv/t.py:8";
  EXPECT_EQ(
      stacks(
          tests::job().ranks(2).stack(0, "native:epoll_wait | " + fit).stack(1, validates).build()),
      "stacks of 2 ranks (3 processes, 3 threads; no thread was paused), by rank\n"
      "  main t.py:8                            0-1\n"
      "  ├ Loop.run epoch.py:153 · epoll_wait   0\n"
      "  └ Loop.run epoch.py:154 · Loop.end     1\n");
}

TEST(Stacks, LibraryFramesBetweenTheUsersVanish) {
  const auto job = tests::job()
                       .ranks(1)
                       .stack(kAll,
                              "py:Net.forward@/srv/net.py:3 | "
                              "py:Module._call_impl@/x/site-packages/torch/nn/modules/module.py:1 "
                              "| py:fit@/srv/t.py:8")
                       .build();
  EXPECT_EQ(stacks(job),
            "stacks of 1 rank (2 processes, 2 threads; no thread was paused)\n  fit t.py:8 · "
            "Net.forward net.py:3   0\n");
}

TEST(Stacks, AStackWithoutUserCodeShowsItsInnermostPythonFrame) {
  const auto job =
      tests::job()
          .ranks(1)
          .stack(kAll,
                 "native:futex_wait@libc.so.6 | py:_shutdown@/usr/lib/python3.11/threading.py:1553")
          .build();
  EXPECT_EQ(stacks(job),
            "stacks of 1 rank (2 processes, 2 threads; no thread was paused)\n  _shutdown "
            "threading.py:1553 · futex_wait   0\n");
}

TEST(Stacks, TooLongChainsLoseTheirOuterFrames) {
  std::string chain = "py:innermost@/srv/t.py:1";
  for (int i = 2; i < 30; ++i) {
    chain += " | py:caller_" + std::to_string(i) + "@/srv/t.py:" + std::to_string(i);
  }
  const auto job = tests::job().ranks(2).stack(kAll, chain).build();
  EXPECT_EQ(stacks(job, {.width = 60}),
            "stacks of 2 ranks (3 processes, 3 threads; no thread was paused), by rank\n  … · "
            "caller_2 t.py:2 · innermost t.py:1   0-1\n");
}

TEST(Stacks, OutliersComeFirstAndLongRankSetsAreCounted) {
  auto story = tests::job().ranks(100).stack(kAll, "py:a@/srv/t.py:1");
  for (model::Rank rank = 0; rank < 100; rank += 2) {
    story.stack(rank, "py:b@/srv/t.py:2");
  }
  story.stack(7, "py:c@/srv/t.py:3");
  const std::string said = stacks(story.build());
  EXPECT_NE(said.find("\n  ├ c t.py:3   7\n  ├ a t.py:1   49 ranks\n  └ b t.py:2   50 ranks\n"),
            std::string::npos)
      << said;
}

TEST(Stacks, CulpritsComeBeforeOutliers) {
  const auto job =
      tests::job().ranks(3).stack(kAll, "py:a@/srv/t.py:1").stack(1, "py:b@/srv/t.py:2").build();
  detectors::Finding finding = tests::conditional_barrier();
  finding.culprits = {0, 2};
  const auto diagnosis = diagnosis_of(job, {finding});
  const std::string said = stack_block(diagnosis, file_names(diagnosis), {});
  EXPECT_LT(said.find("a t.py:1"), said.find("b t.py:2")) << said;
}

TEST(Stacks, ManyPlacesAreCutUnlessAskedForAll) {
  auto story = tests::job().ranks(20);
  for (model::Rank rank = 0; rank < 20; ++rank) {
    story.stack(rank, "py:f@/srv/t.py:" + std::to_string(rank + 1));
  }
  const auto job = story.build();
  const std::string said = stacks(job);
  EXPECT_NE(said.find("… 8 more places: --all   12-19\n"), std::string::npos) << said;
  EXPECT_EQ(stacks(job, {.all_findings = true}).find("more places"), std::string::npos);
}

TEST(Stacks, AJobWithoutRanksIsShownProcessByProcess) {
  model::JobModel job;
  job.observations.push_back({.time = 1, .processes = {}});
  model::Process process;
  process.pid = 42;
  process.state = 'T';
  process.command = {"/usr/bin/sleep", "300"};
  model::Frame frame;
  frame.function = "clock_nanosleep";
  frame.module = "libc.so.6";
  process.threads.resize(1);
  process.threads.front().frames = {frame};
  job.observations.back().processes.push_back(process);
  EXPECT_EQ(stacks(job),
            "stacks of 1 process, 1 thread, outermost call first\n  pid 42 (stopped)  sleep 300   "
            "clock_nanosleep [libc.so.6]\n");
}

TEST(Stacks, NothingIsListedOfProcessesThatNobodyLookedAt) {
  model::JobModel job;
  model::Process process;  // a process that wrote to a log
  process.rank = 0;
  process.role = model::Role::kRank;
  process.threads.resize(1);
  job.observations.push_back({.time = 0, .processes = {process}});
  EXPECT_EQ(stacks(job), "");
  job.observations.back().processes[0].pid = 42;
  EXPECT_NE(stacks(job).find("no stack"), std::string::npos);
}

TEST(Stacks, NativeShowsEveryFrameOfEveryThread) {
  const model::JobModel job = hung_job();
  const std::string said = text(diagnosis_of(job, {}), {.native = true});
  EXPECT_NE(said.find("rank 2 (pid 1200), thread 1200"), std::string::npos) << said;
  EXPECT_NE(said.find("\n  epoll_wait [libc.so.6]\n  gloo::wait [libtorch_cpu.so]\n  "
                      "_engine_run_backward graph.py:824\n"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace ddpdoctor::viewer
