// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include "collector/model/observed_values.h"
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

/// `members` reach a guarded new_group, and with them the other ranks complete it as their next one
/// of all ranks.
Finding asked_of_guard(const std::string& guard, const model::RankSet& inside, int world) {
  JobBuilder builder = job();
  builder.ranks(world).source(kTrain, "def main():\n    " + guard +
                                          ":\n        tp = dist.new_group(members)\n"
                                          "    dp = dist.new_group()\n    dist.all_reduce(x)\n");
  builder.stack(kAll, in("all_reduce", at("main", "all_reduce")))
      .stack(inside, in("new_group", at("main", "tp = dist")));
  const Findings findings = asked("new-group-subset", builder.build());
  return findings.empty() ? Finding{} : findings[0];
}

TEST(NewGroupSubset, BlamesThoseWhoDidNotCallFewOrMany) {
  const Finding few = asked_of_guard("if rank in (0,)", model::RankSet{0}, 4);
  EXPECT_EQ(few.culprits, (model::RankSet{1, 2, 3}));
  EXPECT_EQ(few.waiting, (model::RankSet{0}));
  EXPECT_NE(few.summary.find("ranks 1-3 did not call new_group; rank 0 is waiting in it"),
            std::string::npos)
      << few.summary;
  const Finding many = asked_of_guard("if rank != 3", model::RankSet{0, 1, 2}, 4);
  EXPECT_EQ(many.culprits, (model::RankSet{3}));
  EXPECT_EQ(many.locations.at(0).line, 3);
}

TEST(NewGroupSubset, SaysWhoLeftTheEarlierCallOutWhenOthersStandInALaterOne) {
  const auto stands = [](const std::string& guard) {
    JobBuilder builder = job();
    builder.ranks(4).source(kTrain, "def main():\n    " + guard +
                                        ":\n        tp = dist.new_group(members)\n"
                                        "    dp = dist.new_group()\n    dist.all_reduce(x)\n");
    builder.stack(kAll, in("new_group", at("main", "dp = dist")))
        .stack(1, in("all_reduce", at("main", "all_reduce")));
    const Findings findings = asked("new-group-subset", builder.build());
    return findings.empty() ? Finding{} : findings[0];
  };
  for (const std::string guard : {"if rank in [0, 1]", "if rank in range(2)", "if rank < 2"}) {
    const Finding finding = stands(guard);
    EXPECT_EQ(finding.culprits, (model::RankSet{2, 3})) << guard;
    EXPECT_EQ(finding.locations.at(0).line, 3);
    EXPECT_NE(finding.summary.find("ranks 2 and 3 did not call new_group (train.py:3"),
              std::string::npos)
        << finding.summary;
  }
  EXPECT_EQ(stands("if rank not in {2}").culprits, (model::RankSet{2}));
  // A check that is true on all ranks.
  EXPECT_EQ(stands("if rank < 64").culprits, (model::RankSet{1}));
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

/// Two ranks made a group in a lazy property; all ranks are in the next new_group, which has these
/// numbers and members.
JobBuilder lazy(const std::string& behind, const std::string& ahead,
                const std::string& members_behind = "[0, 1, 2, 3]",
                const std::string& members_ahead = "[0, 1, 2, 3]") {
  constexpr const char* kLazy = R"(
class State:
    @functools.cached_property
    def experts(self):
        return dist.new_group(list(self.ranks))

    @functools.cached_property
    def everybody(self):
        return dist.new_group(backend="gloo")
)";
  const auto makes = [](const std::string& number, const std::string& members) {
    return "native:poll | py:_new_process_group_helper{group_name='" + number +
           "'; global_ranks_in_group=" + members +
           "}@/v/site-packages/torch/distributed/distributed_c10d.py:2100 | "
           "py:new_group@/v/site-packages/torch/distributed/distributed_c10d.py:5863 | " +
           at("State.everybody", "backend=");
  };
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kLazy).group("1", {0, 2}, "group 1");
  builder.stack({0, 2}, makes(ahead, members_ahead)).stack({1, 3}, makes(behind, members_behind));
  return builder;
}

TEST(NewGroupSubset, TellsByTheNumbersAloneThatALazyGroupWasMadeOnSomeRanks) {
  const Findings findings = asked("new-group-subset", lazy("1", "2").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1, 3}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
  EXPECT_NE(
      findings[0].evidence.at(0).text.find("group 1 of ranks 0 and 2 exists only on ranks 0 and 2"),
      std::string::npos)
      << findings[0].evidence.at(0).text;
}

/// The group was used under a test; `value` is what that is on the ranks without the group.
Findings used_under_a_test(const std::string& value) {
  JobBuilder builder = lazy("1", "2");
  builder.source("/srv/main.py",
                 "def main():\n    if expert is not None:\n        dist.all_reduce(expert)\n");
  builder.call({0, 2}, {.operation = "all_reduce",
                        .sequence = 1,
                        .group = "1",
                        .site = "main@/srv/main.py~all_reduce",
                        .state = model::CallState::kCompleted});
  model::JobModel told = builder.build();
  for (const model::Rank rank : {0, 1, 2, 3}) {
    told.facts.push_back(model::fact_of({.rank = rank,
                                         .role = model::ValueRole::kDecision,
                                         .file = "/srv/main.py",
                                         .line = 2,
                                         .function = "main",
                                         .at = 3,
                                         .expression = "expert is not None",
                                         .value = rank % 2 == 0 ? "True" : value,
                                         .state = model::ValueState::kKnown,
                                         .reason = {}}));
  }
  return asked("new-group-subset", told);
}

TEST(NewGroupSubset, ShowsTheTestUnderWhichTheLazyGroupWasUsed) {
  const auto decides = [](const Findings& findings) {
    return findings.size() == 1 &&
           std::any_of(
               findings[0].locations.begin(), findings[0].locations.end(),
               [](const Location& one) { return one.file == "/srv/main.py" && one.line == 2; });
  };
  EXPECT_TRUE(decides(used_under_a_test("False")));
  EXPECT_FALSE(decides(used_under_a_test("True")));
}

TEST(NewGroupSubset, SeesOneNumberForTwoGroupsInTheMaking) {
  JobBuilder builder = lazy("1", "1", "[1, 3]");
  const Findings findings = asked("new-group-subset", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].summary.find("members: rank 0 creates [0, 1, 2, 3], rank 1 creates [1, 3]"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_TRUE(asked("new-group-subset", moving(builder.build())).empty());
  EXPECT_TRUE(asked("new-group-subset", builder.looked_once().build()).empty());
}

TEST(NewGroupSubset, IsSilentWhereTheNumbersProveNothing) {
  EXPECT_TRUE(asked("new-group-subset", lazy("2", "2").build()).empty());
  EXPECT_TRUE(asked("new-group-subset", lazy("1", "2", "[1, 3]").build()).empty());
  EXPECT_TRUE(asked("new-group-subset", lazy("a41f", "77be").build()).empty());  // hashes
  EXPECT_TRUE(asked("new-group-subset", lazy("1", "2").looked_once().build()).empty());
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

/// Ranks 0 and 2, and ranks 1 and 3, each name their own pair group 3.
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

TEST(NewGroupSubset, BlamesAllWhereEachCallsForItsOwnGroupOnly) {
  const Findings findings = asked("new-group-subset", lazy("1", "1", "[1, 3]", "[0, 2]").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1, 2, 3}));
}

TEST(NewGroupSubset, SeesTwoGroupsOfOneName) {
  constexpr const char* kPairs =
      "def pairs(rank):\n    for ranks in ([0, 2], [1, 3]):\n        if rank in ranks:\n"
      "            mine = dist.new_group(ranks)\n    return mine\n\ndef main():\n"
      "    dist.all_reduce(x, group=pairs(dist.get_rank()))\n";
  const Findings findings = asked("new-group-subset", mixed_up(kPairs).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1, 2, 3}));  // each pair left out the other
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
  EXPECT_NE(findings[0].summary.find("two different groups, of ranks 0 and 2 and of ranks 1 and 3"),
            std::string::npos)
      << findings[0].summary;
}

TEST(NewGroupSubset, OfTwoGroupsOfOneNameTheRestOfTheLargerLeftTheSmallerOut) {
  JobBuilder builder = job();
  builder.ranks(4).group("1", {0, 1}).group("1:0,1,2,3", {0, 1, 2, 3});
  builder.source(kTrain, "def main():\n    dist.all_reduce(x)\n");
  builder.stack(kAll, in("all_reduce", at("main", "all_reduce")));
  builder.call({0, 1},
               {.operation = "all_reduce", .group = "1", .site = site("main", "all_reduce")});
  builder.call(
      {2, 3},
      {.operation = "all_reduce", .group = "1:0,1,2,3", .site = site("main", "all_reduce")});
  const Findings findings = asked("new-group-subset", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2, 3}));
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
