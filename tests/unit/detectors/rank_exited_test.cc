// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

TEST(RankExited, NamesTheRankThatLeft) {
  const auto findings =
      asked("rank-exited", job().ranks(3).stack(kAll, kInBarrier).exited(1, 0).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 2}));
}

TEST(RankExited, IsSilentWhenNobodyWaits) {
  EXPECT_TRUE(asked("rank-exited", job().ranks(3).exited(kAll, 0).ended().build()).empty());
}

TEST(RankExited, IsSilentOnAFailure) {
  EXPECT_TRUE(
      asked("rank-exited", job().ranks(3).stack(kAll, kInBarrier).exited(1, 1).build()).empty());
}

/// Rank 1 ended between two calls; the others failed in the second.
JobBuilder ended_between_calls(int status, std::string log = {}) {
  JobBuilder story = job().ranks(3).exited(1, status).exited({0, 2}, 1).ended();
  story.all_reduce(kAll, 1).all_reduce({0, 2}, 2);
  return log.empty() ? story : story.log(1, std::move(log));
}

TEST(RankExited, NamesAStatusThatNoExceptionHas) {
  const auto told = ended_between_calls(3).build();
  const auto findings = asked("rank-exited", told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("rank 1 exited with status 3 before"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("with status 3 (sys.exit"), std::string::npos);
  EXPECT_TRUE(asked("rank-raised", told).empty());
}

TEST(RankExited, NamesTheExceptThatMayHaveSkippedTheLastStep) {
  const auto told = [](const std::string& clause) {
    JobBuilder story = job().ranks(2).exited(1, 0).exited(0, 1).ended();
    story.source("/srv/train.py",
                 "def run(steps):\n  for step in steps:\n    try:\n"
                 "      dist.all_reduce(work(step))\n    except " +
                     clause + ":\n      lost += 1\n");
    story.all_reduce(kAll, 1, 10, "run@/srv/train.py:4");
    story.all_reduce(0, 2, 10, "run@/srv/train.py:4");
    return asked("rank-exited", story.build());
  };
  const auto findings = told("Overflow");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].fix.find("`except Overflow` (train.py:5, run): an exception"),
            std::string::npos)
      << findings[0].fix;
  EXPECT_EQ(told("StopIteration").at(0).fix.find("an exception"), std::string::npos);
}

TEST(RankExited, LeavesAnExceptionToRankRaised) {
  const auto told = ended_between_calls(1).build();
  EXPECT_TRUE(asked("rank-exited", told).empty());
  const auto findings = asked("rank-raised", told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].summary.find("call,"), std::string::npos) << findings[0].summary;
  EXPECT_TRUE(
      asked("rank-exited",
            ended_between_calls(3, "Traceback (most recent call last):\nKeyError: 3\n").build())
          .empty());
}

/// No rank is in a call of torch: the remaining ranks wait for an mp.Event.
JobBuilder left_alone(std::string last_frame) {
  JobBuilder story = job().ranks(3).exited(2, 0);
  for (const model::Rank rank : {0, 1}) {
    story
        .stack(rank, "native:__futex_abstimed_wait_common@libc.so.6 | " + last_frame +
                         "py:wait@/usr/lib/python3.11/multiprocessing/synchronize.py:356 | "
                         "py:check_in@/srv/arena.py:26 | py:player@/srv/arena.py:43")
        .waits(rank, {.kind = "semaphore", .target = {}, .detail = {}});
  }
  return story;
}

TEST(RankExited, NamesTheRankThatLeftOthersWaitingForASignal) {
  const auto findings = asked("rank-exited", left_alone("").build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1}));
}

TEST(RankExited, IsSilentWhileSomebodyCouldStillGiveTheSignal) {
  JobBuilder story = left_alone("");
  story.process({.pid = 77, .threads = {{.stack = "py:main@/srv/server.py:9"}}});
  EXPECT_TRUE(asked("rank-exited", story.build()).empty());
  JobBuilder timer = left_alone("");
  timer.waits(1, {.kind = "semaphore", .target = {}, .detail = {}, .limit = 60});
  EXPECT_TRUE(asked("rank-exited", timer.build()).empty());
}

const std::string kInRendezvous =
    "native:__poll@libc.so.6 | native:c10d::TCPStore::TCPStore@libtorch_cpu.so | "
    "py:_create_c10d_store@/opt/site-packages/torch/distributed/rendezvous.py:198 | "
    "py:init_process_group@/opt/site-packages/torch/distributed/distributed_c10d.py:1710 | "
    "py:main@/srv/train.py:6";

constexpr std::string_view kMain =
    "def main():\n    if len(sys.argv) > 9:\n        return\n    if not files[rank::world]:\n"
    "        sys.exit(0)\n    dist.init_process_group(\"gloo\")\n";

TEST(RankExited, NamesTheWayOutThatARankTookBeforeTheRendezvous) {
  const auto findings = asked("rank-exited", job()
                                                 .ranks(3)
                                                 .source("/srv/train.py", kMain)
                                                 .stack(kAll, kInRendezvous)
                                                 .exited(1, 0)
                                                 .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  ASSERT_EQ(findings[0].locations.size(), 3u);
  EXPECT_EQ(findings[0].locations[0].line, 5);
  EXPECT_EQ(findings[0].locations[1].line, 3);
  EXPECT_EQ(findings[0].locations[2].line, 6);
}

TEST(RankExited, NamesTheWayOutWhereOneRankStillWaitsForAll) {
  const auto findings = asked("rank-exited", job()
                                                 .ranks(3)
                                                 .source("/srv/train.py", kMain)
                                                 .stack(0, kInBarrier)
                                                 .stack(2, kInRendezvous)
                                                 .exited(1, 0)
                                                 .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
  EXPECT_NE(findings[0].summary.find("before the rendezvous"), std::string::npos);
}

TEST(RankExited, PrefersTheLineThatWasSeen) {
  const auto findings = asked("rank-exited", job()
                                                 .ranks(3)
                                                 .source("/srv/train.py", kMain)
                                                 .stack(kAll, kInRendezvous)
                                                 .exited(1, 0)
                                                 .fact("ended-at",
                                                       {{"file", std::string("/srv/train.py")},
                                                        {"line", std::int64_t{3}},
                                                        {"function", std::string("main")}},
                                                       1)
                                                 .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations[0].line, 3);
  EXPECT_EQ(findings[0].locations[1].line, 6);
}

TEST(RankExited, CountsAnyStatusOfARankThatGaveUpBeforeTheStartWithoutAnException) {
  const auto job_with = [](const std::string& log) {
    return job().ranks(3).stack(kAll, kInRendezvous).exited(1, 1).log(1, log).build();
  };
  EXPECT_EQ(asked("rank-exited", job_with("no data for this rank\n")).size(), 1u);
  EXPECT_TRUE(asked("rank-exited", job_with("Traceback (most recent call last):\n"
                                            "  File \"/srv/train.py\", line 4, in main\n"
                                            "KeyError: 'x'\n"))
                  .empty());
}

TEST(RankExited, IsToldAfterTheEndByTheCallItLeftOut) {
  const auto findings =
      asked("rank-exited", job()
                               .ranks(2)
                               .history(kAll, 1, 3, "all_reduce", "train@/srv/train.py:21")
                               .call(0, {.operation = "all_reduce",
                                         .sequence = 4,
                                         .site = "train@/srv/train.py:21",
                                         .state = model::CallState::kFailed})
                               .exited(0, 1)
                               .exited(1, 0)
                               .ended()
                               .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 21);
}

TEST(RankExited, CountsARankThatTorchAbortedWhileItEnded) {
  const auto told = [](bool ending) {
    JobBuilder builder = job();
    builder.ranks(2)
        .history(kAll, 1, 3, "all_reduce", "train@/srv/train.py:21")
        .call(0, {.operation = "all_reduce",
                  .sequence = 4,
                  .site = "train@/srv/train.py:21",
                  .state = model::CallState::kFailed})
        .killed(0, 15)
        .killed(1, 6)
        .fact("abort", {{"ending", ending}}, 1)
        .ended();
    return builder.build();
  };
  const auto findings = asked("rank-exited", told(true));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 21);
  EXPECT_EQ(asked("dead-rank", told(true)).at(0).confidence, Confidence::kPossible);
  EXPECT_TRUE(asked("rank-exited", told(false)).empty());
  EXPECT_EQ(asked("dead-rank", told(false)).at(0).confidence, Confidence::kCertain);
}

TEST(RankExited, IsWhoIsGoneWhileTorchrunWatchesOn) {
  const auto told = [](const std::string& launcher, double seconds = 9) {
    return job()
        .ranks(3)
        .seconds_without_progress(seconds)
        .source("/srv/train.py",
                "def main():\n    if not files:\n        os._exit(0)\n    g = dist.new_group()\n")
        .stack(kAll,
               "native:pthread_cond_wait | native:c10d::Work::wait | "
               "py:all_reduce@/v/site-packages/torch/distributed/distributed_c10d.py:9 | "
               "py:main@/srv/train.py:4")
        .absent(2)
        .process({.role = model::Role::kLauncher,
                  .pid = 4000,
                  .threads = {{.stack = "native:clock_nanosleep | py:" + launcher}}})
        .build();
  };
  const std::string torchrun =
      "_invoke_run@/v/site-packages/torch/distributed/elastic/agent/server/api.py:930";
  const auto findings = asked("rank-exited", told(torchrun));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_TRUE(nothing_likely(asked("rank-exited", told(torchrun, 2))));  // it may still do so
  EXPECT_TRUE(asked("dead-rank", told(torchrun)).empty());
  EXPECT_TRUE(asked("rank-exited", told("watch@/srv/launch.py:3")).empty());
  EXPECT_EQ(asked("dead-rank", told("watch@/srv/launch.py:3")).size(), 1u);
}

constexpr std::string_view kLost =
    "Traceback (most recent call last):\n  File \"/srv/train.py\", line 26, in main\n    "
    "dist.all_reduce(t)\nRuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer "
    "[127.0.0.1]:25004.\n";

model::JobModel ended_with(int status) {
  model::JobModel log;
  log.ended = true;
  log.logs = {{.rank = 0, .text = std::string(kLost)}, {.rank = 1, .text = std::string(kLost)}};
  model::Process process;
  process.rank = 2;
  process.role = model::Role::kRank;
  process.exit = model::Exit{.status = status, .signal = {}};
  log.observations.push_back({.time = 0, .processes = {process}});
  return log;
}

TEST(RankExited, IsWhoEndedWithAStatusThatNoExceptionHas) {
  const auto findings = asked("rank-exited", ended_with(3));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("status 3; ranks 0 and 1 then lost"), std::string::npos)
      << findings[0].summary;
  EXPECT_TRUE(asked("rank-raised", ended_with(3)).empty());
  EXPECT_TRUE(asked("rank-exited", ended_with(1)).empty());
  ASSERT_EQ(asked("rank-raised", ended_with(1)).size(), 1u);
  EXPECT_EQ(asked("rank-raised", ended_with(1))[0].confidence, Confidence::kLikely);
  auto itself = ended_with(3);
  itself.logs.push_back({.rank = 2, .text = std::string(kLost)});
  EXPECT_TRUE(asked("rank-exited", itself).empty()) << "it fell because of another rank";
  auto raised = ended_with(3);
  raised.logs.push_back({.rank = {},
                         .text = "Traceback (most recent call last):\n  File "
                                 "\"/srv/train.py\", line 3, in f\nKeyError: 3\n"});
  EXPECT_TRUE(asked("rank-exited", raised).empty()) << "somebody raised";
}

TEST(RankExited, OfSeveralThatFailedIsWhoWasFirst) {
  auto log = ended_with(3);
  auto& processes = log.observations[0].processes;
  processes.push_back(processes[0]);
  processes[1].rank = 3;
  EXPECT_EQ(asked("rank-exited", log).size(), 2u);
  log.facts.push_back({.rank = 3, .pid = {}, .kind = "first-failure", .fields = {}});
  const auto findings = asked("rank-exited", log);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({3}));
}

TEST(RankExited, IsNotTheCauseIfTheOthersReturnToTheRendezvousWithTwoWorldSizes) {
  const auto told = [](const std::string& size) {
    return job()
        .ranks(3)
        .stack({0, 1}, kInRendezvous)
        .exited(2, 0)
        .environment(0, "WORLD_SIZE", "3")
        .environment(1, "WORLD_SIZE", size)
        .build();
  };
  EXPECT_TRUE(asked("rank-exited", told("2")).empty()) << "rank 1 knows that rank 2 has exited";
  EXPECT_EQ(asked("rank-exited", told("3")).size(), 1u);
}

}  // namespace
}  // namespace ddpdoctor::detectors
