// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def synchronise(stats):
    if stats.sum() > 100:
        dist.broadcast(stats, src=0)
    else:
        dist.all_reduce(stats)

def main():
    for step in range(100):
        synchronise(stats)
)";

const std::string kMain = " | " + at("main", "synchronise(stats)");

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kSource).history(kAll, 1, 7);
  builder.broadcast(2, 8, 0, site("synchronise", "broadcast"))
      .all_reduce({0, 1, 3}, 8, 16, site("synchronise", "all_reduce"));
  builder.stack(kAll, in("all_reduce", at("synchronise", "all_reduce") + kMain))
      .stack(2, in("broadcast", at("synchronise", "broadcast") + kMain));
  return builder;
}

TEST(MismatchedOp, NamesTheMinorityAndBothLines) {
  const Findings findings = asked("mismatched-op", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_EQ(findings[0].locations.at(1).line, 5);
  EXPECT_NE(findings[0].summary.find("all_reduce #8 of default_pg"), std::string::npos);
}

TEST(MismatchedOp, IsLikelyFromStacksAlone) {
  JobBuilder builder = told();
  model::JobModel stacks_only = builder.build();
  stacks_only.collectives.clear();
  const Findings findings = asked("mismatched-op", stacks_only);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(MismatchedOp, ATieIsBrokenByWhatTheLineCallsElsewhere) {
  for (const model::Rank guilty : {0, 1}) {
    JobBuilder builder = job();
    builder.ranks(4).group("1", {0, 1}, "pipe").group("2", {2, 3}, "pipe");
    const auto call = [&builder](model::Rank rank, const char* group, const char* operation) {
      builder.call(rank, {.operation = operation,
                          .sequence = 1,
                          .group = group,
                          .site = "reduce@/srv/parallel.py:75"});
    };
    for (const model::Rank rank : {0, 1}) {
      call(rank, "1", rank == guilty ? "broadcast" : "all_reduce");
    }
    call(2, "2", "all_reduce");
    call(3, "2", "all_reduce");
    model::JobModel told_job = builder.build();
    told_job.observations.clear();
    const Findings findings = asked("mismatched-op", told_job);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].culprits, model::RankSet{guilty});
  }
}

/// Two ranks train for some steps; then one is in a hook that no rank was in before, the other at
/// the start of the next epoch.
JobBuilder hooked(model::Rank guilty, std::int64_t first = 1) {
  constexpr const char* kHooks = R"(
def fit(self):
    for epoch in range(3):
        self.on_start()
        loss.backward()
        self.on_end()

def on_start(self):
    dist.barrier()

def on_end_of_chief(self):
    dist.all_gather(parts, x)
)";
  const std::string start = site("on_start", "dist.barrier") + " | " + site("fit", "self.on_start");
  const std::string end =
      site("on_end_of_chief", "dist.all_gather") + " | " + site("fit", "self.on_end");
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kHooks);
  builder.barrier(kAll, first, start);
  builder.history(kAll, first + 1, first + 4, "all_reduce", site("fit", "loss.backward"));
  builder.barrier(1 - guilty, first + 5, start);
  builder.call(guilty, {.operation = "all_gather", .sequence = first + 5, .site = end});
  builder.stack(1 - guilty,
                in("barrier", at("on_start", "dist.barrier") + " | " + at("fit", "self.on_start")));
  builder.stack(guilty, in("all_gather", at("on_end_of_chief", "dist.all_gather") + " | " +
                                             at("fit", "self.on_end")));
  return builder;
}

TEST(MismatchedOp, ATieIsBrokenByWhoDoesWhatNobodyDidBefore) {
  for (const model::Rank guilty : {0, 1}) {
    const Findings findings = asked("mismatched-op", hooked(guilty).build());
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].culprits, model::RankSet{guilty});
    EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
    EXPECT_NE(findings[0].summary.find("a call that no rank made before"), std::string::npos)
        << findings[0].summary;
  }
}

TEST(MismatchedOp, ATieWithoutTheBeginningAccusesNobody) {
  model::JobModel stacks_only = hooked(0).build();
  stacks_only.collectives.clear();
  for (const model::JobModel& told_job : {hooked(0, 400).build(), stacks_only}) {
    const Findings findings = asked("mismatched-op", told_job);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_TRUE(findings[0].culprits.empty());
    EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 1}));
    EXPECT_EQ(findings[0].confidence,
              told_job.collectives.empty() ? Confidence::kLikely : Confidence::kCertain);
  }
}

TEST(MismatchedOp, IsProvableFromRecordsAloneWithoutAnySource) {
  model::JobModel told_job =
      job().ranks(3).history(kAll, 1, 2).barrier(1, 3).all_reduce({0, 2}, 3).build();
  told_job.observations.clear();
  const Findings findings = asked("mismatched-op", told_job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

TEST(MismatchedOp, IsSilentOnTheHealthyTwin) {
  EXPECT_TRUE(asked("mismatched-op", job().ranks(4).history(kAll, 1, 20).build()).empty());
  model::JobModel running = told().build();
  running.collectives.clear();
  EXPECT_TRUE(asked("mismatched-op", moving(running)).empty());
}

TEST(MismatchedOp, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = told();
  builder.unobserved(0);
  model::JobModel told_job = builder.build();
  std::erase_if(told_job.collectives,
                [](const model::CollectiveCall& call) { return call.rank == 0; });
  EXPECT_TRUE(nothing_likely(asked("mismatched-op", told_job)));
}

TEST(MismatchedOp, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("mismatched-op", told().build())),
            essence(asked("mismatched-op", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
