// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(3)
      .stack({1, 2}, in("barrier", "py:main@/srv/train.py:20"))
      .python(0, kTrain, 5, "tokenize")
      .computing(0);
  return builder;
}

TEST(LongPhase, NamesTheRankAtWork) {
  const Findings findings = asked("long-phase", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
}

TEST(LongPhase, ShowsWhereTwoSidesAtOneLineDivergeInALibrary) {
  const std::string experts = "py:forward@/venv/lib/python3.11/site-packages/moe/model.py:";
  const std::string step = " | py:main@/srv/train.py:20";
  JobBuilder builder = job();
  builder.ranks(3)
      .stack({1, 2}, in("all_gather", experts + "39" + step))
      .stack(0, experts + "33" + step)
      .computing(0);
  const Findings findings = asked("long-phase", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  ASSERT_EQ(findings[0].locations.size(), 4U);
  EXPECT_EQ(findings[0].locations[2].line, 33);
  EXPECT_EQ(findings[0].locations[3].line, 39);
}

TEST(LongPhase, IsNeverMoreThanPossible) {
  EXPECT_TRUE(nothing_likely(asked("long-phase", told().build())));
  EXPECT_TRUE(
      nothing_likely(asked("long-phase", told().progress(model::Progress::kStill).build())));
}

TEST(LongPhase, IsSilentWhenMostRanksWorkOrNobodyDoes) {
  JobBuilder most = told();
  most.python(1, kTrain, 5, "tokenize").computing(1);
  EXPECT_TRUE(asked("long-phase", most.build()).empty());
  EXPECT_TRUE(asked("long-phase",
                    job().ranks(2).stack(kAll, in("barrier", "py:main@/srv/train.py:20")).build())
                  .empty());
}

model::JobModel waited_since(double seconds) {
  JobBuilder builder = job();
  builder.ranks(2)
      .stack(1, in("all_reduce", "py:main@/srv/train.py:20"))
      .python(0, kTrain, 5, "load")
      .computing(0);
  const double now = model::latest(builder.build())->time;
  builder.call(1, {.operation = "all_reduce", .sequence = 7, .time = now - seconds});
  return builder.build();
}

TEST(LongPhase, IsSilentWhenTheOthersHaveJustCome) {
  EXPECT_TRUE(asked("long-phase", waited_since(0.2)).empty());
  EXPECT_EQ(asked("long-phase", waited_since(20)).size(), 1U);
}

TEST(LongPhase, IsSilentWhileTheRankAtWorkMakesCalls) {
  const auto with = [](double seconds) {
    model::JobModel out = waited_since(20);
    model::CollectiveCall own = out.collectives.front();
    own.rank = 0;
    own.group = "9";
    own.time = model::latest(out)->time - seconds;
    out.collectives.push_back(own);
    return asked("long-phase", out);
  };
  EXPECT_TRUE(with(0.3).empty());
  EXPECT_EQ(with(15).size(), 1U);
}

/// Only a log: the watchdog of `waited` ended its wait while a bar of `drew` moved.
Findings of_log(model::Rank waited, std::optional<model::Rank> drew) {
  auto builder = job();
  builder.fact("watchdog-timeout", {{"operation", std::string("all_reduce")}, {"seconds", 1807.4}},
               waited);
  builder.fact(
      "progress-bar",
      {{"text", std::string("caching")}, {"done", std::string("7")}, {"total", std::string("9")}},
      drew);
  return asked("long-phase", builder.log({}, "text").build());
}

TEST(LongPhase, ABarThatMovedDuringTheWaitShowsTheWork) {
  const auto findings = of_log(1, {});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].waiting, (model::RankSet{1}));
  EXPECT_EQ(findings[0].summary,
            "a different rank was still at work (caching: 7 of 9) when rank 1 timed out in "
            "all_reduce");
  EXPECT_EQ(of_log(0, 1).at(0).culprits, (model::RankSet{1}));
}

TEST(LongPhase, ABarOfARankThatWaitedShowsNothing) {
  EXPECT_TRUE(of_log(1, 1).empty());
  EXPECT_TRUE(of_log(0, {}).empty());  // rank 0 draws most bars
}

TEST(LongPhase, IsSilentWhenARankIsUnobserved) {
  EXPECT_TRUE(asked("long-phase", told().unobserved(2).build()).empty());
}

JobBuilder after_the_call(int line) {
  JobBuilder builder = job();
  builder.ranks(3)
      .stack({1, 2}, in("all_reduce",
                        "py:sync@/v/site-packages/fw/sync.py:30 | "
                        "py:main@/srv/train.py:20"))
      .stack(0,
             fmt::format("py:sync@/v/site-packages/fw/sync.py:{} | py:main@/srv/train.py:20", line))
      .computing(0);
  return builder;
}

TEST(LongPhase, DoesNotSayThatARankAfterTheCallIsStillAtWork) {
  const Findings findings = asked("long-phase", after_the_call(34).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].summary.find("still"), std::string::npos);
  EXPECT_NE(findings[0].summary.find("may have passed that call"), std::string::npos);
  const Findings before = asked("long-phase", after_the_call(28).build());
  ASSERT_EQ(before.size(), 1U);
  EXPECT_NE(before[0].summary.find("still at work"), std::string::npos);
}

TEST(LongPhase, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("long-phase", told().build())),
            essence(asked("long-phase", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
