// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "rank-raised";

constexpr std::string_view kMixed = R"log([rank0]: Traceback (most recent call last):
[rank2]: Traceback (most recent call last):
[rank0]:   File "/srv/train.py", line 40, in main
[rank2]:   File "/srv/train.py", line 12, in load
[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:3000
[rank2]: KeyError: 'shard'
)log";

TEST(RankRaised, WhoWritesOnAfterATracebackHandledIt) {
  const std::string handled =
      "[rank1]: start\n[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"a.py\", line 3, in load\n[rank1]: ImportError: apex\n";
  const auto sure = [](const std::string& log) {
    const auto findings = asked("rank-raised", job().log({}, log).build());
    return !findings.empty() && findings[0].confidence != Confidence::kPossible;
  };
  EXPECT_TRUE(sure(handled));
  EXPECT_FALSE(sure(handled + "[rank1]: going on without\n[rank1]: step 1\n"));
  EXPECT_TRUE(sure(handled + "[rank0]: step 1\n[rank0]: step 2\n"));  // of another rank
}

TEST(RankRaised, TakesTheRankWhoseErrorIsItsOwn) {
  const auto findings =
      asked(kKind, job().ranks(3).exited(kAll, 1).ended().log({}, std::string(kMixed)).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

constexpr std::string_view kChained = R"log(Traceback (most recent call last):
  File "/srv/train.py", line 5, in parse
ValueError: x

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/train.py", line 11, in main
  File "/srv/train.py", line 7, in parse
ConfigError: bad config
)log";

TEST(RankRaised, TakesTheLastExceptionOfAChain) {
  const auto findings =
      asked(kKind, job().ranks(2).exited(kAll, 1).ended().log(1, std::string(kChained)).build());
  EXPECT_EQ(findings.at(0).locations.at(0).line, 7);
}

TEST(RankRaised, TakesTheFirstOfAChainWhenTheLastIsAConsequence) {
  std::string text(kChained);
  text.replace(text.find("ConfigError: bad config"), 23, "RuntimeError: Connection closed by peer");
  const auto findings = asked(kKind, job().ranks(2).exited(kAll, 1).ended().log(1, text).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
}

TEST(RankRaised, OnlySuspectsAnExceptionThatTheRankHandled) {
  const std::string handled =
      "Traceback (most recent call last):\n  File \"/srv/train.py\", line 9, in read\nOSError: "
      "bad\n";
  EXPECT_TRUE(
      nothing_likely(asked(kKind, job().ranks(2).stack(kAll, kInBarrier).log(0, handled).build())));
  const auto findings = asked(
      kKind, job()
                 .ranks(2)
                 .exited(kAll, 1)
                 .ended()
                 .log(0, handled + "Traceback (most recent call last):\n  File \"/srv/train.py\", "
                                   "line 20, in main\nKeyError: 3\n")
                 .build());
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[1].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[1].locations.at(0).line, 20);
}

TEST(RankRaised, FindsARankInItsHandler) {
  const auto told =
      job()
          .ranks(2)
          .source(
              "/srv/train.py",
              "def main():\n    try:\n        step()\n    except RuntimeError:\n        clean()\n")
          .stack(kAll, kInBarrier)
          .stack(1, "native:read@libc.so.6 | py:main@/srv/train.py:5")
          .build();
  const auto findings = asked(kKind, told);
  EXPECT_EQ(findings.at(0).culprits, model::RankSet({1}));
  EXPECT_EQ(findings.at(0).waiting, model::RankSet({0}));
}

TEST(RankRaised, APauseBeforeTheNextTryIsNoFailure) {
  const auto told = [](double limit, double seconds) {
    return job()
        .ranks(2)
        .seconds_without_progress(seconds)
        .source("/srv/train.py",
                "def fetch():\n    for attempt in range(tries):\n        try:\n            get()\n"
                "        except OSError:\n            time.sleep(2 ** attempt)\n")
        .stack(kAll, kInBarrier)
        .stack(1, "native:clock_nanosleep@libc.so.6 | py:fetch@/srv/train.py:6")
        .waits(1, {.kind = "timer", .target = {}, .detail = {}, .limit = limit})
        .build();
  };
  EXPECT_TRUE(asked(kKind, told(7.5, 5)).empty());
  EXPECT_EQ(asked(kKind, told(86400, 60)).at(0).confidence, Confidence::kLikely);
  EXPECT_NE(asked(kKind, told(86400, 5)).at(0).summary.find("keeps"), std::string::npos);
}

TEST(RankRaised, SeesAnExceptionOnItsWayThroughAWith) {
  const auto told = [](const std::string& native) {
    return job()
        .ranks(3)
        .source("/srv/ctx.py",
                "def distributed():\n    try:\n        yield\n    finally:\n"
                "        dist.barrier()\n")
        .stack(kAll,
               "native:c10d::Work::wait@libtorch_cpu.so | py:all_gather@/opt/site-packages/"
               "torch/distributed/distributed_c10d.py:3000 | py:main@/srv/train.py:20")
        .stack(0,
               "native:c10d::Work::wait@libtorch_cpu.so | py:barrier@/opt/site-packages/torch/"
               "distributed/distributed_c10d.py:4830 | py:distributed@/srv/ctx.py:5 | " +
                   native +
                   "py:_GeneratorContextManager.__exit__@/usr/lib/python3.11/contextlib.py:158 | "
                   "py:main@/srv/train.py:18")
        .build();
  };
  const auto findings = asked(kKind, told("native:_gen_throw@python3.11 | "));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
  EXPECT_TRUE(asked(kKind, told("")).empty());
}

TEST(RankRaised, SeesAnExceptionInTheExitOfAWith) {
  JobBuilder builder =
      job()
          .ranks(3)
          .stack(kAll,
                 "native:c10d::Work::wait@libtorch_cpu.so | py:all_reduce@/opt/site-packages/"
                 "torch/distributed/distributed_c10d.py:3000 | py:main@/srv/train.py:27")
          .stack(
              1,
              "native:c10d::Work::wait@libtorch_cpu.so | py:barrier@/opt/site-packages/torch/"
              "distributed/distributed_c10d.py:4830 | py:synced_timer.__exit__@/srv/timing.py:18 "
              "| py:main@/srv/train.py:24");
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
  EXPECT_EQ(asked("mismatched-op", builder.build()).size(), 1u);
  builder.fact("exception",
               {{"exception", std::string("KeyError: 'Cat'")},
                {"file", std::string("/srv/train.py")},
                {"line", std::int64_t{9}},
                {"function", std::string("encode")},
                {"handler_file", std::string("/srv/train.py")},
                {"handler_function", std::string("main")}},
               1, pid_of(1));
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_TRUE(asked("mismatched-op", builder.build()).empty());
}

TEST(RankRaised, OnlySuspectsARankOfWhichALogTellsTheStatusAlone) {
  model::JobModel log;
  log.ended = true;
  log.logs.push_back({.rank = {}, .text = "Root Cause (first observed failure):\n"});
  model::Process process;
  process.rank = 3;
  process.role = model::Role::kRank;
  process.exit = model::Exit{.status = 1, .signal = {}};
  log.observations.push_back({.time = 0, .processes = {process}});
  const Findings findings = asked("rank-raised", log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{3});
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  log.observations[0].processes[0].exit->status = 0;
  EXPECT_TRUE(asked("rank-raised", log).empty());
}

TEST(RankRaised, IsSilentOnConsequencesOnly) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(2)
                               .log({},
                                    "[rank0]: Traceback (most recent call last):\n[rank0]:   File "
                                    "\"/srv/train.py\", line 4, in main\n"
                                    "[rank0]: RuntimeError: Connection closed by peer\n")
                               .build())
                  .empty());
}

TEST(RankRaised, IsSilentOnACalmJob) {
  EXPECT_TRUE(asked(kKind, job().ranks(2).stack(kAll, kInBarrier).build()).empty());
}

constexpr std::string_view kSpawned = R"log(Traceback (most recent call last):
  File "/srv/train.py", line 30, in main
torch.multiprocessing.spawn.ProcessRaisedException:

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "/opt/site-packages/torch/multiprocessing/spawn.py", line 87, in _wrap
  File "/srv/train.py", line 12, in load
KeyError: 'shard'
)log";

TEST(RankRaised, ReadsWhatSpawnPassesOnFromItsChild) {
  const auto findings = asked(kKind, job()
                                         .ranks(3)
                                         .killed({0, 2}, 15)
                                         .exited(1, 1)
                                         .ended()
                                         .log({}, std::string(kSpawned))
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(RankRaised, AccusesWhoWasGoneBeforeTheCallInWhichOthersFailed) {
  const auto told = job()
                        .ranks(2)
                        .history(kAll, 1, 3, "all_reduce", "train@/srv/train.py:21")
                        .call(0, {.operation = "all_reduce",
                                  .sequence = 4,
                                  .site = "train@/srv/train.py:21",
                                  .state = model::CallState::kFailed})
                        .killed(0, 6)
                        .killed(1, 15)
                        .ended()
                        .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(asked("dead-rank", told).empty() ||
              !asked("dead-rank", told).front().culprits.contains(0));
}

constexpr std::string_view kCleanUp = R"py(
def train():
    for step in range(1000):
        dist.all_reduce(x)
def main():
    try:
        train()
    finally:
        dist.barrier()
)py";

TEST(RankRaised, KnowsARankInItsFinallyWhileOthersAreInTheTry) {
  const auto told =
      job()
          .ranks(2)
          .source("/srv/train.py", kCleanUp)
          .stack(0,
                 "py:barrier@/opt/site-packages/torch/distributed/distributed_c10d.py:1 | "
                 "py:main@/srv/train.py:8")
          .stack(1,
                 "py:all_reduce@/opt/site-packages/torch/distributed/distributed_c10d.py:1 | "
                 "py:train@/srv/train.py:3 | py:main@/srv/train.py:6")
          .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
}

TEST(RankRaised, IsSilentOnAFinallyThatALoopOverDataMayHaveReached) {
  std::string source(kCleanUp);
  source.replace(source.find("range(1000)"), 11, "loader");
  const auto told =
      job()
          .ranks(2)
          .source("/srv/train.py", source)
          .stack(0,
                 "py:barrier@/opt/site-packages/torch/distributed/distributed_c10d.py:1 | "
                 "py:main@/srv/train.py:8")
          .stack(1,
                 "py:all_reduce@/opt/site-packages/torch/distributed/distributed_c10d.py:1 | "
                 "py:train@/srv/train.py:3 | py:main@/srv/train.py:6")
          .build();
  EXPECT_TRUE(asked(kKind, told).empty());
}

TEST(RankRaised, SeesAHandlerAmongTheCallers) {
  const auto findings =
      asked(kKind,
            job()
                .ranks(2)
                .source("/srv/train.py", R"(
def cleanup():
    dist.barrier()
def main():
    try:
        step()
    except RuntimeError:
        cleanup()
)")
                .stack(kAll, kInBarrier)
                .stack(1,
                       "py:barrier@/opt/site-packages/torch/distributed/distributed_c10d.py:4830 | "
                       "py:cleanup@/srv/train.py:2 | py:main@/srv/train.py:7")
                .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
}

TEST(RankRaised, SeesAnExceptionWhoseRankCleansUp) {
  const auto findings = asked(
      kKind,
      job()
          .ranks(2)
          .source("/srv/train.py", R"(
try:
    step()
finally:
    dist.barrier()
)")
          .stack(kAll, kInBarrier)
          .stack(1,
                 "py:barrier@/opt/site-packages/torch/distributed/distributed_c10d.py:4830 | "
                 "py:<module>@/srv/train.py:4")
          .log(1,
               "Traceback (most recent call last):\n  File \"/srv/train.py\", line 2, in <module>\n"
               "ValueError: no\n")
          .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).line, 2);
}

/// Rank 1 is in a barrier of its own; its interpreter has this exception. No source is known.
JobBuilder with_exception(bool printed, const std::string& exception) {
  JobBuilder builder = job();
  builder.ranks(2)
      .stack(0,
             "py:all_reduce@/opt/site-packages/torch/distributed/distributed_c10d.py:1 | "
             "py:step@/srv/train.py:9 | py:main@/srv/train.py:16")
      .stack(1,
             "py:barrier@/opt/site-packages/torch/distributed/distributed_c10d.py:4830 | "
             "py:main@/srv/train.py:19")
      .fact("exception",
            {{"exception", exception},
             {"printed", printed},
             {"file", std::string("/srv/train.py")},
             {"line", std::int64_t{5}},
             {"function", std::string("collate")},
             {"handler_file", std::string("/srv/train.py")},
             {"handler_function", std::string("main")}},
            1, pid_of(1));
  return builder;
}

TEST(RankRaised, NamesTheExceptionThatARankHandlesAndWhereItCameFrom) {
  const auto findings = asked(kKind, with_exception(false, "BadSample: empty row").build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
  EXPECT_EQ(findings[0].locations.back().line, 19);
  EXPECT_NE(findings[0].evidence.at(0).text.find("BadSample: empty row"), std::string::npos);
}

TEST(RankRaised, IsSilentOnExceptionsThatSteerAProgram) {
  EXPECT_TRUE(asked(kKind, with_exception(false, "StopIteration").build()).empty());
}

TEST(RankRaised, IsSureOfARankThatFailedAndIsOnItsWayOut) {
  const auto told = with_exception(true, "BadSample: empty row").build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
  EXPECT_TRUE(asked("missing-rank", told).empty());
  EXPECT_TRUE(asked(kKind, with_exception(true, "RuntimeError: Connection closed by peer").build())
                  .empty());
}

TEST(RankRaised, TrustsAnExceptionWithoutARankWhereEveryRankFailed) {
  const std::string text =
      "  File \"/srv/train.py\", line 2\n    def f(:\n          ^\nSyntaxError: invalid syntax\n";
  const auto findings = asked(kKind, job().ranks(2).exited(kAll, 1).ended().log({}, text).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.at(0).line, 2);
  EXPECT_TRUE(nothing_likely(
      asked(kKind, job().ranks(2).killed(1, 9).exited(0, 0).ended().log({}, text).build())));
}

}  // namespace
}  // namespace ddpdoctor::detectors
