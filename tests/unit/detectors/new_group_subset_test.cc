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
