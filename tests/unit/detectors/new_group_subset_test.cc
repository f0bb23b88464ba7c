// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def make_groups(rank):
    if rank < 2:
        return dist.new_group([0, 1])
    return None

def main():
    group = make_groups(rank)
    dist.all_reduce(x)
)";

JobBuilder hung() {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kSource);
  builder.stack({0, 1}, in("new_group", at("make_groups", "new_group")))
      .stack(2, in("all_reduce", at("main", "all_reduce")));
  return builder;
}

TEST(NewGroupSubset, NamesTheRankThatDidNotCome) {
  const Findings findings = asked("new-group-subset", hung().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_EQ(findings[0].locations.at(1).line, 2);
}

TEST(NewGroupSubset, TellsByTheNumbersOfTheGroupsWhoLeftOneOut) {
  const auto makes = [](const std::string& number) {
    return "native:poll | py:_new_process_group_helper{group_name='" + number +
           "'}@/v/site-packages/torch/distributed/distributed_c10d.py:2100 | "
           "py:new_group@/v/site-packages/torch/distributed/distributed_c10d.py:5863 | " +
           at("main", "make_groups(rank)");
  };
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kSource).stack({0, 1}, makes("2")).stack(2, makes("1"));
  const Findings findings = asked("new-group-subset", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
}

TEST(NewGroupSubset, FindsTheEarlierGuardedCallWhenAllStandInALaterOne) {
  constexpr const char* kTwo =
      "def main():\n    if rank == 0:\n        a = dist.new_group([0])\n    b = dist.new_group([0, "
      "1])\n";
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kTwo).stack(kAll, in("new_group", at("main", "b = dist")));
  const Findings findings = asked("new-group-subset", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
}

TEST(NewGroupSubset, IsCertainWhenTheOthersWaitForThoseWhoAreInIt) {
  constexpr const char* kLazy =
      "def group():\n    return dist.new_group(ranks)\n\ndef mean(x):\n"
      "    dist.all_reduce(x, group=group())\n\ndef main():\n    dist.broadcast(x, src=0)\n"
      "    if active:\n        mean(x)\n";
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kLazy);
  builder.stack({0, 1, 2},
                in("new_group", at("group", "new_group") + " | " + at("mean", "dist.all_reduce") +
                                    " | " + at("main", "    mean(x)")));
  builder.stack(3, in("broadcast", at("main", "dist.broadcast")));
  const Findings findings = asked("new-group-subset", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{3}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
}

/// Ranks 0 and 2, and ranks 1 and 3, each call their own pair group 3.
JobBuilder mixed_up(const std::string& source) {
  JobBuilder builder = job();
  builder.ranks(4).group("3", {0, 2}).group("3:1,3", {1, 3}).source(kTrain, source);
  builder.stack(kAll, in("all_reduce", at("main", "all_reduce")));
  builder.call({0, 2},
               {.operation = "all_reduce", .group = "3", .site = site("main", "all_reduce")});
  builder.call({1, 3},
               {.operation = "all_reduce", .group = "3:1,3", .site = site("main", "all_reduce")});
  return builder;
}

TEST(NewGroupSubset, SeesTwoGroupsOfOneName) {
  constexpr const char* kPairs =
      "def pairs(rank):\n    for ranks in ([0, 2], [1, 3]):\n        if rank in ranks:\n"
      "            mine = dist.new_group(ranks)\n    return mine\n\ndef main():\n"
      "    dist.all_reduce(x, group=pairs(rank))\n";
  const Findings findings = asked("new-group-subset", mixed_up(kPairs).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
  EXPECT_NE(findings[0].summary.find("two groups: of ranks 0,2 and of ranks 1,3"),
            std::string::npos)
      << findings[0].summary;
}

TEST(NewGroupSubset, IsSilentWhenTwoGroupsOfOneNameDoTheirWork) {
  EXPECT_TRUE(
      asked("new-group-subset", moving(mixed_up("def main():\n    all_reduce(x)\n").build()))
          .empty());
}

TEST(NewGroupSubset, IsSilentWhenAllStandInOneUnguardedCall) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain, "def main():\n    b = dist.new_group([0, 1])\n")
      .stack(kAll, in("new_group", at("main", "b = dist")));
  EXPECT_TRUE(asked("new-group-subset", builder.build()).empty());
}

TEST(NewGroupSubset, IsSilentWhileTheJobMovesOrARankWorks) {
  EXPECT_TRUE(asked("new-group-subset", moving(hung().build())).empty());
  JobBuilder builder = hung();
  builder.python(2, kTrain, 7, "main").computing(2).progress(model::Progress::kStill);
  EXPECT_TRUE(asked("new-group-subset", builder.build()).empty());
}

TEST(NewGroupSubset, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = hung();
  builder.unobserved(1);
  EXPECT_TRUE(nothing_likely(asked("new-group-subset", builder.build())));
}

TEST(NewGroupSubset, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("new-group-subset", hung().build())),
            essence(asked("new-group-subset", records_reversed(hung().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
