// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def wait_for_config():
    while True:
        time.sleep(0.5)

def main():
    for step in range(100):
        if dist.get_rank() == 1:
            wait_for_config()
        dist.all_reduce(grads)
)";

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kSource).history(kAll, 1, 9).all_reduce({0, 2, 3}, 10);
  builder.stack(kAll, in("all_reduce", at("main", "all_reduce")));
  builder.stack(1, "native:clock_nanosleep | native:time_sleep | " +
                       at("wait_for_config", "time.sleep") + " | " +
                       at("main", "    wait_for_config()"));
  return builder;
}

TEST(MissingRank, SaysWhereTheRankIsInstead) {
  const Findings findings = asked("missing-rank", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 2, 3}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_NE(findings[0].summary.find("rank 1 has not called all_reduce #10 of default_pg"),
            std::string::npos);
}

/// Rank 1 waits in these frames, called from its own line, not in the collective.
Finding asked_of_wait(const std::string& frames, std::optional<model::WaitsOn> wait = {}) {
  JobBuilder builder = told();
  builder.stack(1, frames + " | " + at("main", "    wait_for_config()"));
  if (wait) {
    builder.waits(1, *wait);
  }
  builder.process({.pid = 4321,
                   .command = {"gcloud", "storage", "cp"},
                   .threads = {{.stack = "native:poll@libc.so.6"}}});
  const Findings findings = asked("missing-rank", builder.build());
  return findings.empty() ? Finding{} : findings[0];
}

TEST(MissingRank, SaysWhatTheRankWaitsForAndWhatToDoAboutIt) {
  const auto threading = [](const std::string& function) {
    return "native:__futex_abstimed_wait_common@libc.so.6 | py:" + function +
           "@/usr/lib/python3.11/threading.py:327";
  };
  const std::string queue = " | py:Queue.get@/usr/lib/python3.11/queue.py:171";
  const std::vector<std::array<std::string, 3>> waits = {
      {threading("Condition.wait") + " | py:Event.wait@/usr/lib/python3.11/threading.py:629",
       "is waiting for a threading.Event to be set (train.py:8", "Set this Event"},
      {threading("Condition.wait"), "is waiting for a threading.Condition (train.py:8",
       "should notify"},
      {threading("wait"), "is waiting for a threading.Event or Condition", "should notify"},
      {threading("Condition.wait") + queue, "is waiting for an item of a queue", "should put an"},
  };
  for (const auto& [frames, doing, advice] : waits) {
    const Finding finding = asked_of_wait(frames);
    EXPECT_NE(finding.summary.find(doing), std::string::npos) << finding.summary;
    EXPECT_NE(finding.fix.find(advice), std::string::npos) << finding.fix;
    EXPECT_EQ(finding.locations.at(0).line, 8);
  }
  const std::string put = " | py:Queue.put@/usr/lib/python3.11/queue.py:140";
  EXPECT_NE(asked_of_wait(threading("Condition.wait") + put).summary.find("room in a full queue"),
            std::string::npos);
  EXPECT_EQ(asked_of_wait(threading("Condition.__enter__") + put).summary.find("full queue"),
            std::string::npos)
      << "it waits for the lock of the queue";
  const Finding child = asked_of_wait(
      "native:wait4@libc.so.6 | py:Popen.wait@/usr/lib/python3.11/subprocess.py:1264",
      model::WaitsOn{.kind = "process", .target = "pid:4321", .detail = {}, .limit = {}});
  EXPECT_NE(child.summary.find("waiting for process 4321 (gcloud storage cp) to end"),
            std::string::npos)
      << child.summary;
}

TEST(MissingRank, EndsItsGroupsInADumpThatCallsItActive) {
  JobBuilder builder = told();
  builder.stack(1, "py:destroy_process_group@torch/distributed/distributed_c10d.py:2146 | " +
                       at("main", "    wait_for_config()"));
  model::JobModel job = builder.build();
  for (model::Process& process : job.observations.back().processes) {
    process.threads.front().capture = std::string(model::kDumpedFrom) + "py-spy";
    process.threads.front().state = process.rank == 1 ? 'R' : 'S';
  }
  const Findings findings = asked("missing-rank", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].fix.find("an exception of rank 1"), std::string::npos);
}

TEST(MissingRank, QuotesTheLoopInWhichTheRankSleeps) {
  const Findings findings = asked("missing-rank", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("sleeping in the loop `while True`"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("(line 2)"), std::string::npos) << findings[0].fix;
  EXPECT_EQ(findings[0].locations.back().line, 2);
}

TEST(MissingRank, IsNotCalledRankConditionalForSleepingUnderATestOfTheRank) {
  EXPECT_TRUE(asked("rank-conditional-collective", told().build()).empty());
}

TEST(MissingRank, WorksFromStacksAlone) {
  model::JobModel stacks_only = told().build();
  stacks_only.collectives.clear();
  const Findings findings = asked("missing-rank", stacks_only);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

/// `loss.item()`: the host waits for its stream, and the stream waits in a collective.
constexpr const char* kItem =
    "native:cudaStreamSynchronize | native:at::native::_local_scalar_dense_cuda | "
    "py:train@/srv/train.py:9";

TEST(MissingRank, IsElsewhereWhileTheOthersWaitForTheirGpus) {
  const Findings findings = asked(
      "missing-rank",
      job().ranks(4).stack({0, 1, 3}, kItem).stack(2, "py:validate@/srv/train.py:20").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 1, 3}));
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].locations.at(0).line, 20);
  EXPECT_EQ(findings[0].locations.at(1).line, 9);
}

TEST(MissingRank, IsNobodyWhenAMinorityWaitsForItsGpuOrTheOtherWorks) {
  EXPECT_TRUE(
      asked(
          "missing-rank",
          job().ranks(4).stack({0, 1}, kItem).stack({2, 3}, "py:validate@/srv/train.py:20").build())
          .empty());
  EXPECT_TRUE(asked("missing-rank", job()
                                        .ranks(4)
                                        .stack({0, 1, 3}, kItem)
                                        .stack(2, "py:validate@/srv/train.py:20")
                                        .computing(2)
                                        .build())
                  .empty());
}

TEST(MissingRank, LeavesABusyDataLoaderWorkerToItsOwnDetector) {
  const std::string batch =
      "native:__poll@libc.so.6 | py:_MultiProcessingDataLoaderIter._try_get_data@"
      "/opt/site-packages/torch/utils/data/dataloader.py:1290 | py:main@/srv/train.py:13";
  const std::string loop =
      "py:_worker_loop@/opt/site-packages/torch/utils/data/_utils/worker.py:349";
  const auto told = [&](const std::string& worker) {
    JobBuilder builder = job();
    builder.ranks(3)
        .stack({0, 2}, in("all_reduce", "py:main@/srv/train.py:14"))
        .stack(1, batch)
        .worker(1, worker);
    return asked("missing-rank", builder.build());
  };
  const Findings busy = told("native:clock_nanosleep | py:get@/srv/remote.py:21 | " + loop);
  EXPECT_TRUE(nothing_likely(busy));
  const Findings idle = told(
      "native:__poll@libc.so.6 | py:Queue.get@/usr/lib/python3.11/multiprocessing/queues.py:113 "
      "| " +
      loop);
  ASSERT_EQ(idle.size(), 1U);
  EXPECT_NE(idle[0].confidence, Confidence::kPossible);
}

TEST(MissingRank, NeverAccusesAnUnobservedRank) {
  JobBuilder builder = job();
  builder.ranks(3).stack({0, 1}, in("all_reduce", "py:main@/srv/train.py:9")).unobserved(2);
  EXPECT_TRUE(asked("missing-rank", builder.build()).empty());
}

TEST(MissingRank, LeavesTheDeadToOthers) {
  JobBuilder builder = job();
  builder.ranks(3).stack({0, 1}, in("all_reduce", "py:main@/srv/train.py:9")).killed(2, 9);
  EXPECT_TRUE(asked("missing-rank", builder.build()).empty());
}

TEST(MissingRank, IsSilentWhenTheRankWorksOrTheJobMoves) {
  JobBuilder builder = told();
  builder.computing(1);
  EXPECT_TRUE(asked("missing-rank", builder.build()).empty());
  EXPECT_TRUE(asked("missing-rank", moving(told().build())).empty());
}

TEST(MissingRank, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("missing-rank", told().build())),
            essence(asked("missing-rank", records_reversed(told().build()))));
}

TEST(MissingRank, OnlySuspectsARankOnItsWayAtOneLook) {
  const std::string reduces =
      "py:all_reduce@/opt/site-packages/torch/distributed/distributed_c10d.py:2900 | "
      "py:main@/srv/train.py:9";
  EXPECT_TRUE(nothing_likely(asked("missing-rank", job()
                                                       .ranks(2)
                                                       .stack(0, reduces)
                                                       .python(1, "/srv/train.py", 8, "main")
                                                       .looked_once()
                                                       .build())));
}

TEST(MissingRank, IsSilentWhileAnEventLoopHasATimer) {
  const auto told = [](std::optional<double> limit) {
    JobBuilder builder = job();
    builder.ranks(2)
        .stack(1, in("barrier", "py:main@/srv/train.py:12"))
        .stack(0,
               "native:epoll_wait | py:EpollSelector.select@/usr/lib/python3.11/selectors.py:468 | "
               "py:BaseEventLoop._run_once@/usr/lib/python3.11/asyncio/base_events.py:1884 | "
               "py:main@/srv/train.py:9")
        .waits(0, {.kind = "other", .target = {}, .detail = {}, .limit = limit});
    return asked("missing-rank", builder.build());
  };
  EXPECT_TRUE(told(2.8).empty());
  EXPECT_EQ(told(std::nullopt).size(), 1U);
}

TEST(MissingRank, LooksWhetherSomebodyWritesTheFileThatARankPollsFor) {
  const auto told = [](std::optional<double> sleep) {
    JobBuilder builder = job();
    builder.ranks(2)
        .source(kTrain,
                "def wait_for(path):\n    while not os.path.exists(path):\n        time.sleep(d)\n")
        .stack(1, in("barrier", "py:main@/srv/train.py:9"))
        .stack(0, "native:clock_nanosleep | " + at("wait_for", "time.sleep") +
                      " | py:main@/srv/train.py:7")
        .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = 2});
    if (sleep) {
      builder.process(
          {.pid = 800,
           .ppid = tests::kLauncherPid,
           .threads = {{.stack = "native:clock_nanosleep",
                        .waits_on = model::WaitsOn{
                            .kind = "timer", .target = {}, .detail = {}, .limit = sleep}}}});
    }
    return asked("missing-rank", builder.build());
  };
  EXPECT_TRUE(told(12).empty());
  EXPECT_EQ(told(std::nullopt).size(), 1U);
}

TEST(MissingRank, AreMostWhenTheySleepBeforeTheCallThatOneIsInAlready) {
  const auto told = [](int line) {
    JobBuilder builder = job();
    builder.ranks(3)
        .source(kTrain, "def take(self):\n    while not there():\n        time.sleep(1)\n")
        .stack(kAll, "native:clock_nanosleep | native:time_sleep | " + at("take", "time.sleep") +
                         " | py:main@/srv/train.py:" + std::to_string(line))
        .waits(kAll, {.kind = "timer", .target = {}, .detail = {}, .limit = 0.5})
        .stack(0, in("barrier", "py:main@/srv/train.py:9"))
        .seconds_without_progress(60);
    return builder.build();
  };
  const Findings findings = asked("missing-rank", told(8));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1, 2}));
  EXPECT_TRUE(asked("extra-rank-in-collective", told(8)).empty());
  EXPECT_EQ(asked("extra-rank-in-collective", told(10)).at(0).culprits, (model::RankSet{0}));
}

TEST(MissingRank, OnlySuspectsARankThatPollsSinceAMoment) {
  const auto told = [](const std::string& loop, double sleep, double seconds) {
    JobBuilder builder = job();
    builder.ranks(2)
        .source(kTrain, "def take(self):\n    " + loop + ":\n        time.sleep(4)\n")
        .stack(1, in("barrier", "py:main@/srv/train.py:9"))
        .stack(0, "native:clock_nanosleep | native:time_sleep | " + at("take", "time.sleep") +
                      " | py:main@/srv/train.py:7")
        .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = sleep})
        .seconds_without_progress(seconds);
    return asked("missing-rank", builder.build()).at(0).confidence;
  };
  EXPECT_EQ(told("while not bucket.take(1)", 3, 4), Confidence::kPossible);
  EXPECT_NE(told("while not bucket.take(1)", 3, 60), Confidence::kPossible);
  EXPECT_NE(told("while not bucket.take(1)", 86400, 4), Confidence::kPossible);
}

}  // namespace
}  // namespace ddpdoctor::detectors
