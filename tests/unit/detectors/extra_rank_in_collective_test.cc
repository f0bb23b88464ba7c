// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4)
      .stack(kAll, "native:clock_nanosleep | py:idle@/srv/train.py:20")
      .stack(3, in("barrier", "py:finish@/srv/train.py:9"));
  return builder;
}

TEST(ExtraRankInCollective, NamesTheFewWhoCame) {
  const Findings findings = asked("extra-rank-in-collective", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{3}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_TRUE(asked("missing-rank", told().build()).empty());
}

TEST(ExtraRankInCollective, IsSilentWhenMostCameOrTheOthersWork) {
  JobBuilder most = told();
  most.stack({1, 2}, in("barrier", "py:finish@/srv/train.py:9"));
  EXPECT_TRUE(asked("extra-rank-in-collective", most.build()).empty());
  JobBuilder working = told();
  working.computing({0, 1, 2});
  EXPECT_TRUE(asked("extra-rank-in-collective", working.build()).empty());
}

TEST(ExtraRankInCollective, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = told();
  builder.unobserved(0);
  EXPECT_TRUE(nothing_likely(asked("extra-rank-in-collective", builder.build())));
}

// Rank 3 waits for rank 4, which has died; so #6 of its other group, of which all are members, does
// not end. Rank 2 has launched #7 there, too.
TEST(ExtraRankInCollective, IsSilentWhereTheCallIsOnlyLaunchedBehindAnOpenOne) {
  const auto open = [](std::string group, std::int64_t sequence, double time) {
    return tests::CallStory{.operation = "all_reduce",
                            .sequence = sequence,
                            .group = std::move(group),
                            .site = "step@/srv/train.py:8",
                            .state = model::CallState::kStarted,
                            .time = time};
  };
  JobBuilder builder = job();
  builder.ranks(5).backend("nccl").group("1", {0, 1, 2, 3}, "dp").group("2", {3, 4}, "tp");
  builder.history(kAll, 1, 5).call(3, open("2", 1, 9));
  builder.call({0, 1, 2, 3}, open("1", 1, 10)).call(2, open("1", 2, 11));
  model::JobModel recorded = builder.build();
  recorded.observations.clear();  // a dump has no stacks
  EXPECT_TRUE(asked("extra-rank-in-collective", recorded).empty());
  const Findings findings = asked("missing-rank", recorded);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{4});
}

/// Rank 0 of three is in the gather of the next iteration, the others wait for a file.
JobBuilder polling(const std::string& gather) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain,
              "def take(path):\n    while not os.path.exists(path):\n        time.sleep(1)\n"
              "def main():\n    for i in range(9):\n" +
                  gather + "        take(path)\n")
      .stack(kAll, "native:clock_nanosleep | native:time_sleep | " + at("take", "time.sleep") +
                       " | " + at("main", "  take(path)"))
      .waits(kAll, {.kind = "timer", .target = {}, .detail = {}, .limit = 0.5})
      .stack(0, in("all_gather", at("main", "all_gather")))
      .seconds_without_progress(60);
  return builder;
}

TEST(ExtraRankInCollective, IsSilentWhereTheCallIsAheadOfTheOthers) {
  const JobBuilder plain = polling("        dist.all_gather(out, x)\n");
  EXPECT_TRUE(asked("extra-rank-in-collective", plain.build()).empty());
  const Findings findings = asked("missing-rank", plain.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1, 2}));
  // Silent if the line is under a condition, or after the line of the others.
  for (const char* gather : {"        if flag:\n            dist.all_gather(out, x)\n",
                             "        break\n    dist.all_gather(out, x)\n    for i in other:\n"}) {
    EXPECT_TRUE(asked("missing-rank", polling(gather).build()).empty()) << gather;
  }
}

TEST(ExtraRankInCollective, IsSilentWhereTheOthersMadeTheCallBefore) {
  const auto told_of = [](const char* way) {
    JobBuilder builder = told();
    builder.history(kAll, 1, 4, "barrier", way)
        .call(3, {.operation = "barrier", .sequence = 5, .site = "finish@/srv/train.py:9"});
    return builder.build();
  };
  const model::JobModel before = told_of("finish@/srv/train.py:9");
  EXPECT_TRUE(asked("extra-rank-in-collective", before).empty());
  EXPECT_EQ(asked("missing-rank", before).at(0).culprits, (model::RankSet{0, 1, 2}));
  for (const char* other : {"start@/srv/train.py:3", "finish@/srv/train.py:9 | main@/srv/b.py:1"}) {
    EXPECT_EQ(asked("extra-rank-in-collective", told_of(other)).size(), 1U) << other;
  }
}

TEST(ExtraRankInCollective, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("extra-rank-in-collective", told().build())),
            essence(asked("extra-rank-in-collective", reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
