// SPDX-License-Identifier: Apache-2.0
#include "collector/model/questions.h"
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "dead-rank";

TEST(DeadRank, NamesTheRankAndTheSignal) {
  const auto findings = asked(kKind, job().ranks(3).stack(kAll, kInBarrier).killed(1, 9).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 2}));
  EXPECT_NE(findings[0].summary.find("SIGKILL"), std::string::npos);
}

TEST(DeadRank, IsWhomNcclHasGivenUp) {
  const auto told = [](bool dead, bool seen) {
    JobBuilder builder = job().ranks(3).stack(0, kInBarrier).stack(1, kInBarrier);
    if (!seen) {
      builder.absent(2);
    }
    model::JobModel built = builder.build();
    built.facts.push_back({.rank = 2,
                           .pid = 77,
                           .kind = "nccl-ras",
                           .fields = {{"considered_dead", dead}, {"host", "n1"}}});
    return asked(kKind, built);
  };
  ASSERT_EQ(told(true, false).size(), 1u);
  EXPECT_EQ(told(true, false)[0].confidence, Confidence::kLikely);
  EXPECT_EQ(told(true, false)[0].culprits, model::RankSet({2}));
  EXPECT_NE(told(true, false)[0].summary.find("process 77 on n1"), std::string::npos);
  ASSERT_EQ(told(false, false).size(), 1u);
  EXPECT_EQ(told(false, false)[0].confidence, Confidence::kPossible);
  EXPECT_TRUE(told(true, true).empty()) << "it was seen alive";
}

TEST(DeadRank, WithoutAProcessIsNoneOfTheGroupThatSomebodyWaitsIn) {
  const auto told = [](std::vector<model::Rank> members) {
    JobBuilder builder = job().ranks(4).group("1", std::move(members));
    builder.stack(0, "native:clock_nanosleep | py:main@/srv/train.py:25");
    builder.stack(1,
                  "native:c10d::Work::wait | py:all_reduce{group='1'}@/v/torch/distributed/"
                  "distributed_c10d.py:3100 | py:main@/srv/train.py:30");
    builder.call(1, {.operation = "all_reduce", .group = "1"}).absent(2).absent(3);
    return asked(kKind, builder.build());
  };
  EXPECT_EQ(told({0, 1, 2, 3}).size(), 1u);
  EXPECT_TRUE(told({0, 1}).empty());
}

TEST(DeadRank, AdvisesOnABusErrorByHowFullSharedMemoryWas) {
  const auto advice = [](std::int64_t used) {
    return asked(kKind, job()
                            .ranks(2)
                            .stack(kAll, kInBarrier)
                            .killed(1, 7)
                            .fact("shm-usage", {{"bytes_total", std::int64_t{100}},
                                                {"bytes_used", used},
                                                {"peak", true}})
                            .build())
        .at(0)
        .fix;
  };
  EXPECT_NE(advice(99).find("--shm-size"), std::string::npos);
  EXPECT_EQ(advice(2).find("--shm-size"), std::string::npos);
  EXPECT_NE(advice(2).find("2 % full"), std::string::npos);
}

TEST(DeadRank, PointsAtTheLineWhereItCrashedWhenItWroteItsStack) {
  auto told = job().ranks(2).stack(kAll, "py:step@/srv/ops.py:77").build();
  for (model::Observation& observation : told.observations) {
    for (model::Process& process : observation.processes) {
      if (process.rank == 1) {
        process.exit = model::Exit{.status = {}, .signal = 11};
        process.threads.front().state = 'X';
      }
    }
  }
  const auto findings = asked("dead-rank", told);
  ASSERT_EQ(findings.size(), 1u);
  ASSERT_FALSE(findings[0].locations.empty());
  EXPECT_EQ(findings[0].locations[0].line, 77);
  EXPECT_EQ(findings[0].locations[0].rank, 1);
}

TEST(DeadRank, DoesNotBlameThoseWhomTheLauncherEnded) {
  const auto findings =
      asked(kKind, job().ranks(3).killed(0, 15).killed(1, 11).killed(2, 15).ended().build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
}

TEST(DeadRank, DoesNotBlameThoseWhoseEndNobodySaw) {
  auto told = job().ranks(3).killed(1, 9).ended().build();
  for (model::Process& process : told.observations.back().processes) {
    if (process.rank && process.rank != 1) {
      process.state = 'X';
      process.threads.clear();
    }
  }
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
}

TEST(DeadRank, DoesNotBlameThoseWhomTheLauncherEndedByTheSameSignal) {
  const auto told = [](int signal) {
    auto about = job().ranks(3).killed(0, 9).killed(1, 9).killed(2, 9).build();
    for (const model::Rank rank : {0, 2}) {
      about.facts.push_back({.rank = rank,
                             .pid = model::rank_process(about, rank)->pid,
                             .kind = "cleaned-up",
                             .fields = {{"signal", std::int64_t{signal}}}});
    }
    return about;
  };
  const auto findings = asked(kKind, told(9));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(asked(kKind, told(15))[0].culprits, model::RankSet({0, 1, 2})) << "another signal";
}

TEST(DeadRank, LeavesAnAbortInACallOfTwoSizesToThatDisagreement) {
  const auto told = [](std::int64_t other) {
    return job()
        .ranks(2)
        .all_reduce(0, 5, 32)
        .all_reduce(1, 5, other)
        .killed(0, 6)
        .killed(1, 15)
        .ended()
        .build();
  };
  EXPECT_TRUE(asked(kKind, told(1827)).empty());
  EXPECT_EQ(asked(kKind, told(32)).size(), 1u);
}

TEST(DeadRank, LeavesAnAbortToTheDisagreementThatIsStillOpenBehindItsNewestCall) {
  const auto told = [](model::CallState state) {
    JobBuilder builder = job();
    builder.ranks(2).all_reduce(0, 5, 1).all_reduce(1, 5, 97);
    builder.all_reduce(kAll, 6, 97);
    model::JobModel built = builder.killed(0, 6).killed(1, 15).ended().build();
    built.collectives.front().state = state;
    return asked(kKind, built);
  };
  EXPECT_TRUE(told(model::CallState::kEnqueued).empty());
  EXPECT_EQ(told(model::CallState::kCompleted).size(), 1U);
}

TEST(DeadRank, SaysWhereTheOthersAreWhenNobodyWaitsInACall) {
  const auto findings =
      asked(kKind, job().ranks(3).stack(kAll, "py:main@/srv/worker.py:20").killed(2, 9).build());
  ASSERT_EQ(findings.size(), 1u);
  ASSERT_FALSE(findings[0].locations.empty());
  EXPECT_EQ(findings[0].locations[0].line, 20);
}

TEST(DeadRank, KnowsARankThatVanishedWhileTheOthersPoll) {
  constexpr std::string_view kPolls = R"(
def main():
    while store.add(key, 0) < world:
        time.sleep(0.01)
)";
  const auto told = [&](std::string_view source) {
    return job()
        .ranks(3)
        .group("0", {0, 1, 2}, "default_pg")
        .source("/srv/worker.py", source)
        .stack(kAll, "native:time_sleep | py:main@/srv/worker.py:3")
        .absent(2)
        .build();
  };
  ASSERT_EQ(asked(kKind, told(kPolls)).size(), 1u);
  EXPECT_TRUE(asked(kKind, told("def main():\n    work()\n    time.sleep(1)\n")).empty());
}

TEST(DeadRank, KnowsARankThatVanishedAfterTheRendezvous) {
  const auto findings = asked(kKind, job().ranks(3).stack(kAll, kInBarrier).absent(2).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
}

TEST(DeadRank, LeavesThoseWhoAreGoneWhileTorchrunWatchesToRankExited) {
  JobBuilder builder = job().ranks(3).stack(kAll, kInBarrier).absent(2);
  builder.process({.role = model::Role::kLauncher,
                   .pid = 900,
                   .threads = {{.stack = "native:clock_nanosleep@libc.so.6 | "
                                         "py:SimpleElasticAgent._invoke_run@/x/torch/distributed/"
                                         "elastic/agent/server/api.py:930"}}});
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
  EXPECT_EQ(asked("rank-exited", builder.build()).size(), 1u);
}

TEST(DeadRank, OnlySuspectsAnAbortAfterTheWorkIsDone) {
  const auto told = [](const char* text, int calls_of_zero) {
    return asked(kKind, job()
                            .ranks(2)
                            .all_reduce(kAll, 1)
                            .all_reduce(calls_of_zero == 2 ? Who{0} : Who{kAll}, 2)
                            .killed(0, 6)
                            .killed(1, 15)
                            .ended()
                            .log({}, text)
                            .build());
  };
  constexpr const char* kAtExit = "terminate called without an active exception\n";
  const auto ending = told(kAtExit, 1);
  ASSERT_EQ(ending.size(), 1u);
  EXPECT_EQ(ending[0].confidence, Confidence::kPossible);
  EXPECT_EQ(told("free(): invalid pointer\n", 1).at(0).confidence, Confidence::kCertain);
  for (const Finding& finding : told(kAtExit, 2)) {  // its second call is not complete
    EXPECT_NE(finding.confidence, Confidence::kPossible);
  }
}

TEST(DeadRank, QuotesTheKernelWhenItKilledForMemory) {
  const auto findings =
      asked(kKind, job()
                       .ranks(2)
                       .stack(kAll, kInBarrier)
                       .killed(1, 9)
                       .fact("kernel-log", {{"about", std::string("oom-kill")},
                                            {"text", std::string("Killed process 1100")}})
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].evidence.back().text.find("Killed process 1100"), std::string::npos);
}

TEST(DeadRank, TakesAnEndedSiblingForTheAbsentRank) {
  const auto told =
      job()
          .ranks(3)
          .stack(kAll, kInBarrier)
          .absent(1)
          .process(
              {.pid = 777, .ppid = kLauncherPid, .exit = model::Exit{.status = {}, .signal = 9}})
          .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(std::get<std::int64_t>(findings[0].details.at("pid")), 777);
}

TEST(DeadRank, DoesNotTakeAProcessWithoutPidForTheAbsentRank) {
  auto told =
      job()
          .ranks(3)
          .stack(kAll, kInBarrier)
          .absent(1)
          .process(
              {.pid = 777, .ppid = kLauncherPid, .exit = model::Exit{.status = 1, .signal = {}}})
          .build();
  EXPECT_TRUE(asked(kKind, told).at(0).details.contains("pid"));
  for (model::Observation& observation : told.observations) {
    for (model::Process& process : observation.processes) {
      process.pid = process.pid == 777 ? 0 : process.pid;
    }
  }
  EXPECT_FALSE(asked(kKind, told).at(0).details.contains("pid"));  // absent is all that is known
}

TEST(DeadRank, IsSilentOnAnEndedChildThatIsNoRank) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(3)
                               .stack(kAll, kInBarrier)
                               .process({.pid = 777,
                                         .ppid = kLauncherPid,
                                         .exit = model::Exit{.status = {}, .signal = 9}})
                               .build())
                  .empty());
}

TEST(DeadRank, IsSilentWhenAllLive) {
  EXPECT_TRUE(asked(kKind, job().ranks(3).stack(kAll, kInBarrier).build()).empty());
}

TEST(DeadRank, IsSilentOnARankThatWasNotObserved) {
  EXPECT_TRUE(asked(kKind, job().ranks(3).stack(kAll, kInBarrier).unobserved(2).build()).empty());
}

TEST(DeadRank, IsSilentOnAMovingJobWithAnAbsentRank) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(3)
                               .stack(kAll, kInBarrier)
                               .absent(2)
                               .progress(model::Progress::kMoving)
                               .build())
                  .empty());
}

TEST(DeadRank, DoesNotBlameThoseWhomTheLauncherEndedForAnother) {
  EXPECT_TRUE(asked(kKind, job().ranks(3).killed({0, 2}, 15).exited(1, 1).ended().build()).empty());
}

TEST(DeadRank, RaysWordsOfAWorkerThatDied) {
  JobBuilder builder;
  const auto findings =
      asked(kKind, builder
                       .log({},
                            "(TaskRunner pid=9) ray.exceptions.ActorDiedError: The actor died.\n"
                            "(TaskRunner pid=9) The actor is dead because its worker process has "
                            "died. Worker exit type: SYSTEM_ERROR\n")
                       .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].summary.find("an actor of Ray whose process has ended"), std::string::npos)
      << findings[0].summary;
}

TEST(DeadRank, TheKernelsWordsOfAProgramThatIsNoPythonAccuseNobody) {
  JobBuilder builder;
  EXPECT_TRUE(
      asked(kKind,
            builder.log({}, "Out of memory: Killed process 71 (chrome) total-vm:1kB").build())
          .empty());
}

TEST(DeadRank, AShellSawAProgramOfPythonKilled) {
  const std::string line = "./go.sh: line 17: 4210 Killed                  ";
  const auto findings =
      asked(kKind, JobBuilder().log({}, line + "python -m torch.distributed.run a.py\n").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("process 4210"), std::string::npos) << findings[0].summary;
  EXPECT_TRUE(asked(kKind, JobBuilder().log({}, line + "sleep 100\n").build()).empty());
  EXPECT_TRUE(
      asked(kKind, JobBuilder().log({}, "note: 4210 Killed python a.py\n").build()).empty());
}

TEST(DeadRank, TorchNamesTheThreadThatTheKernelKilled) {
  const std::string killed = "Out of memory: Killed process 71 (pt_main_thread) total-vm:1kB\n";
  EXPECT_EQ(asked(kKind, JobBuilder().log({}, killed).build()).size(), 1U);
}

TEST(DeadRank, TheKernelsWordsOfAProgramThatTheJobNamesAreOfTheJob) {
  const std::string killed = "Memory cgroup out of memory: Killed process 71 (serve::worker) x\n";
  EXPECT_TRUE(asked(kKind, JobBuilder().log({}, killed).build()).empty());
  for (const char* line : {"INFO serve starts", "[2026-11-20 10:00:00] serve: ready"}) {
    const auto findings =
        asked(kKind, JobBuilder().log({}, killed + line + std::string("\n")).build());
    ASSERT_EQ(findings.size(), 1U) << line;
    EXPECT_NE(findings[0].summary.find("process 71"), std::string::npos) << findings[0].summary;
  }
  EXPECT_TRUE(asked(kKind, JobBuilder().log({}, killed + "the observer serves\n").build()).empty());
  EXPECT_TRUE(asked(kKind, JobBuilder()
                               .log({}, killed + "serve starts\n")
                               .progress(model::Progress::kMoving)
                               .build())
                  .empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
