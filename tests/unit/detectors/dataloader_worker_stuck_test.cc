// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "dataloader-worker-stuck";

constexpr std::string_view kShards = R"(
class Shards:
    def fetch(self, index):
        while not self.ready(index):
            time.sleep(0.2)

    def __getitem__(self, index):
        time.sleep(0.2)
        return self.fetch(index)
)";

const std::string kPolls =
    "native:clock_nanosleep@libc.so.6 | py:Shards.fetch@/srv/shards.py:4 | "
    "py:Shards.__getitem__@/srv/shards.py:8 | " +
    kForkedWorker;
const std::string kNaps =
    "native:clock_nanosleep@libc.so.6 | py:Shards.__getitem__@/srv/shards.py:7 | " + kForkedWorker;

JobBuilder story(const std::string& worker, char state = 'S') {
  return job()
      .ranks(4)
      .source("/srv/shards.py", kShards)
      .stack(kAll, kInBarrier)
      .stack(1, kInBatchWait)
      .worker(1, kIdleWorker)
      .worker(1, worker, state);
}

TEST(DataloaderWorkerStuck, BlamesTheWorkersLineAndNotTheRanks) {
  const auto findings = asked(kKind, story(kPolls).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 2, 3}));
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/shards.py");
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
  EXPECT_EQ(std::get<std::int64_t>(findings[0].details.at("pid")), worker_pid(1, 1));
}

TEST(DataloaderWorkerStuck, IsSilentOnIdleWorkers) {
  EXPECT_TRUE(asked(kKind, story(kIdleWorker).build()).empty());
}

TEST(DataloaderWorkerStuck, OnlySuspectsAWorkerThatMayJustBeSlow) {
  EXPECT_TRUE(nothing_likely(asked(kKind, story(kNaps).build())));
  EXPECT_TRUE(nothing_likely(asked(
      kKind,
      story("native:inflate@libz.so.1 | py:Shards.__getitem__@/srv/shards.py:8 | " + kForkedWorker,
            'R')
          .build())));
}

TEST(DataloaderWorkerStuck, OnlySuspectsAWorkerWhoseInputIsSlowToCome) {
  const auto reads_from = [](const std::string& target, double seconds) {
    auto told =
        story("native:read@libc.so.6 | py:Shards.__getitem__@/srv/shards.py:8 | " + kForkedWorker)
            .seconds_without_progress(seconds)
            .build();
    for (model::Observation& look : told.observations) {
      for (model::Process& process : look.processes) {
        if (process.pid == worker_pid(1, 1)) {
          process.threads.front().waits_on = {.kind = "socket", .target = target, .detail = {}};
        }
      }
    }
    return asked(kKind, told);
  };
  EXPECT_TRUE(nothing_likely(reads_from("address:10.0.0.9:443", 8)));
  EXPECT_FALSE(nothing_likely(reads_from("pid:" + std::to_string(pid_of(0)), 8)));
  EXPECT_FALSE(nothing_likely(reads_from("address:10.0.0.9:443", 60)));
}

TEST(DataloaderWorkerStuck, BelievesALongSleepAtLast) {
  const auto findings = asked(kKind, story(kNaps).seconds_without_progress(60).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(DataloaderWorkerStuck, IsSilentInAMovingJob) {
  EXPECT_TRUE(asked(kKind, story(kPolls).progress(model::Progress::kMoving).build()).empty());
}

TEST(DataloaderWorkerStuck, IsSilentWhenTheRankDoesNotWaitForABatch) {
  EXPECT_TRUE(asked(kKind, story(kPolls).stack(1, kInBarrier).build()).empty());
}

TEST(DataloaderWorkerStuck, MakesOneFindingOfSeveralRanksAtOneLine) {
  const auto told = story(kPolls).stack(2, kInBatchWait).worker(2, kPolls).build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1, 2}));
  EXPECT_EQ(essence(findings), essence(asked(kKind, reversed(told))));
}

TEST(DataloaderWorkerStuck, IsSilentOnAWorkerThatGotOn) {
  model::JobModel told = job()
                             .ranks(2)
                             .stack(kAll, kInBarrier)
                             .stack(0, kInBatchWait)
                             .worker(0, "py:decode@/srv/data.py:30 | " + kForkedWorker)
                             .build();
  EXPECT_EQ(asked("dataloader-worker-stuck", told).size(), 1u);
  told.observations.back().processes.back().threads[0].frames[0].line = 32;
  EXPECT_TRUE(asked("dataloader-worker-stuck", told).empty());
}

TEST(DataloaderWorkerStuck, TellsHowToContinueAWorkerThatWasStopped) {
  const auto findings = asked(kKind, story(kPolls, 'T').build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("was stopped"), std::string::npos);
  EXPECT_NE(findings[0].fix.find(std::to_string(worker_pid(1, 1))), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::detectors
