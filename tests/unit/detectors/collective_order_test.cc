// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(2).group("1", {0, 1}, "tp").group("2", {0, 1}, "dp");
  builder.stack(0, in("all_reduce", "py:sync_tp@/srv/train.py:3 | py:main@/srv/train.py:20",
                      "group=<ProcessGroup 1>"));
  builder.stack(1, in("all_reduce", "py:sync_dp@/srv/train.py:6 | py:main@/srv/train.py:18",
                      "group=<ProcessGroup 2>"));
  return builder;
}

TEST(CollectiveOrder, NamesEveryMemberOfTheCircle) {
  const Findings findings = asked("collective-order", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].locations.size(), 2U);
  EXPECT_NE(
      findings[0].summary.find("in opposite order: rank 0 is in all_reduce of tp, rank 1 is in"),
      std::string::npos)
      << findings[0].summary;
}

TEST(CollectiveOrder, GoesRoundOverTheGroupsOfAMesh) {
  JobBuilder builder = job();
  builder.ranks(4)
      .group("1", {0, 1}, "row 0")
      .group("2", {2, 3}, "row 1")
      .group("3", {0, 2}, "column 0")
      .group("4", {1, 3}, "column 1");
  const auto waits = [&builder](model::Rank rank, const std::string& group) {
    builder.stack(rank, in("all_reduce", "py:sweep@/srv/train.py:3 | py:main@/srv/train.py:20",
                           "group=<ProcessGroup " + group + ">"));
  };
  waits(0, "1");
  waits(1, "4");
  waits(3, "2");
  waits(2, "3");
  const Findings findings = asked("collective-order", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1, 2, 3}));
}

/// Rank 1 is in its group of experts, all others in that of all ranks, at one line.
Findings flushed(const std::string& order) {
  JobBuilder builder = job();
  builder.ranks(4).group("1", {0, 1, 2, 3}, "dense").group("3", {1, 3}, "expert");
  builder.source(kTrain,
                 "import torch\nfrom torch import distributed as dist\n"
                 "def flush(names, batch):\n"
                 "    load = {n: int(torch.bincount(batch).max()) for n in names}\n"
                 "    for name in " +
                     order +
                     ":\n"
                     "        dist.all_reduce(grads[name], group=groups[name])\n"
                     "def main():\n"
                     "    for batch in torch.utils.data.DataLoader(rows):\n"
                     "        flush(['dense', 'expert'], batch)\n");
  const std::string reduce = "        dist.all_reduce(grads[name]";
  const std::string flush = "        flush(['dense'";
  const std::string lines = at("flush", reduce) + " | " + at("main", flush);
  const std::string calls = site("flush", reduce) + " | " + site("main", flush);
  const auto reduced = [&](model::Rank rank, const std::string& group, std::int64_t sequence) {
    builder.call(rank, {.operation = "all_reduce",
                        .sequence = sequence,
                        .group = group,
                        .site = calls,
                        .count = 8});
  };
  for (const model::Rank rank : {0, 1, 2, 3}) {
    reduced(rank, "1", 1);
    if (rank % 2 == 1) {
      reduced(rank, "3", 1);
    }
    reduced(rank, rank == 1 ? "3" : "1", 2);
  }
  builder.stack({0, 2, 3}, in("all_reduce", lines, "group=<ProcessGroup 1>"));
  builder.stack(1, in("all_reduce", lines, "group=<ProcessGroup 3>"));
  return asked("collective-order", builder.build());
}

TEST(CollectiveOrder, NamesTheLoopWhoseOrderEachRankDecidesByItsData) {
  const Findings findings = flushed("sorted(names, key=lambda n: -load[n])");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1, 3}));  // no rank waits for 0 and 2 elsewhere
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 2}));
  EXPECT_EQ(findings[0].locations.back().line, 5);
  EXPECT_EQ(findings[0].locations.back().note, "decides which group comes first");
}

TEST(CollectiveOrder, BlamesNoLoopThatHasOneOrderOnEveryRank) {
  const Findings findings = flushed("sorted(names)");  // of literals
  ASSERT_EQ(findings.size(), 1U);
  for (const Location& place : findings[0].locations) {
    EXPECT_NE(place.line, 5) << place.note;
  }
}

constexpr const char* kActors = R"(
class Trainer:
    def loop(self, every):
        for count in range(1000):
            dist.broadcast(self.batch, 1, group=samples)  # trainer
            if count % every == 0:
                dist.broadcast(self.weight, 0, group=weights)  # trainer

class Rollout:
    def loop(self, every):
        for count in range(1000):
            dist.broadcast(self.batch, 1, group=samples)  # rollout
            if count % every == 0:
                dist.broadcast(self.weight, 0, group=weights)  # rollout

def main():
    actor = Trainer() if dist.get_rank() == 0 else Rollout()
    actor.loop(EVERY)
)";

/// A trainer and a rollout worker wait for each other in two groups; with `met`, in each both have
/// met before.
JobBuilder actors(bool met) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kActors).group("1", {0, 1}, "weights");
  builder.group("2", {0, 1}, "samples");
  const std::string main = " | " + at("main", "actor.loop");
  const auto call = [](const std::string& group, std::int64_t sequence, const std::string& line,
                       const std::string& function) {
    return tests::CallStory{.operation = "broadcast",
                            .sequence = sequence,
                            .group = group,
                            .site = site(function, line) + " | " + site("main", "actor.loop")};
  };
  const std::string weight = "dist.broadcast(self.weight, 0, group=weights)  # ";
  const std::string batch = "dist.broadcast(self.batch, 1, group=samples)  # ";
  if (met) {
    builder.call(0, call("1", 1, weight + "trainer", "Trainer.loop"))
        .call(1, call("1", 1, weight + "rollout", "Rollout.loop"))
        .call(0, call("2", 1, batch + "trainer", "Trainer.loop"))
        .call(1, call("2", 1, batch + "rollout", "Rollout.loop"));
  }
  const std::int64_t next = met ? 2 : 1;
  builder.call(0, call("1", next, weight + "trainer", "Trainer.loop"))
      .call(1, call("2", next, batch + "rollout", "Rollout.loop"))
      .stack(0, in("broadcast", at("Trainer.loop", weight + "trainer") + main,
                   "group=<ProcessGroup 1>"))
      .stack(1, in("broadcast", at("Rollout.loop", batch + "rollout") + main,
                   "group=<ProcessGroup 2>"));
  return builder;
}

TEST(CollectiveOrder, IsThatOfActorsWhichHaveMetInBothGroupsBefore) {
  const Findings findings = asked("collective-order", actors(true).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  ASSERT_EQ(findings[0].locations.size(), 3U);
  const auto& ways = findings[0].locations[2].outcomes;
  ASSERT_EQ(ways.size(), 2U);
  EXPECT_EQ(ways[0].expression + " is " + ways[0].value + " on " + ways[0].ranks.ranges() + ", " +
                ways[1].value + " on " + ways[1].ranks.ranges(),
            "actor.loop is Rollout.loop on 1, Trainer.loop on 0");
  EXPECT_TRUE(asked("rank-conditional-collective", actors(true).build()).empty());
  EXPECT_TRUE(asked("collective-order", actors(false).build()).empty());
}

TEST(CollectiveOrder, HoldsForTwoArmsOfOneIf) {
  JobBuilder builder = told();
  builder.source(kTrain,
                 "def main():\n    if dist.get_rank() == 1:\n        sync_dp()\n    else:\n        "
                 "sync_tp()\n");
  builder.stack(0, in("all_reduce", "py:sync_tp@/srv/a.py:3 | " + at("main", "sync_tp"),
                      "group=<ProcessGroup 1>"));
  builder.stack(1, in("all_reduce", "py:sync_dp@/srv/a.py:6 | " + at("main", "sync_dp"),
                      "group=<ProcessGroup 2>"));
  EXPECT_EQ(asked("collective-order", builder.build()).size(), 1U);
  EXPECT_TRUE(asked("rank-conditional-collective", builder.build()).empty());
}

TEST(CollectiveOrder, LeavesACallUnderATestOfTheRankToItsOwnKind) {
  JobBuilder builder = told();
  builder.source(kTrain, "def main():\n    if rank == 1:\n        extra()\n    step()\n");
  builder.stack(0, in("all_reduce", at("main", "step"), "group=<ProcessGroup 1>"));
  builder.stack(1, in("all_reduce", at("main", "extra"), "group=<ProcessGroup 2>"));
  EXPECT_TRUE(asked("collective-order", builder.build()).empty());
  EXPECT_FALSE(asked("rank-conditional-collective", builder.build()).empty());
}

TEST(CollectiveOrder, IsSilentOnTheHealthyTwin) {
  EXPECT_TRUE(asked("collective-order", moving(told().build())).empty());
  JobBuilder builder = told();
  builder.stack(1, in("all_reduce", "py:sync_tp@/srv/train.py:3 | py:main@/srv/train.py:20",
                      "group=<ProcessGroup 1>"));
  EXPECT_TRUE(asked("collective-order", builder.build()).empty());
}

TEST(CollectiveOrder, IsOnlyPossibleWhenAMemberIsUnobserved) {
  JobBuilder builder = job();
  builder.ranks(3).group("1", {0, 1, 2}, "tp").group("2", {0, 1, 2}, "dp").unobserved(2);
  builder.stack(0, in("all_reduce", "py:sync_tp@/srv/train.py:3", "group=<ProcessGroup 1>"));
  builder.stack(1, in("all_reduce", "py:sync_dp@/srv/train.py:6", "group=<ProcessGroup 2>"));
  EXPECT_TRUE(nothing_likely(asked("collective-order", builder.build())));
}

/// As in Python-only dumps: no arguments of frames, and all are in one operation.
JobBuilder dumped(const std::string& source, const char* mine, const char* theirs) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, source);
  builder.stack(0, in("all_reduce", at("main", mine)))
      .stack(1, in("all_reduce", at("main", theirs)));
  return builder;
}

constexpr const char* kArms =
    "def main():\n    if rank == 1:\n        first(dp)\n        first(tp)\n    else:\n"
    "        other(tp)\n        other(dp)\n";

TEST(CollectiveOrder, OnlySuspectsTwoLinesOfOneOperationWhoseGroupsAreUnknown) {
  const Findings findings =
      asked("collective-order", dumped(kArms, "other(tp)", "first(dp)").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].summary.find("default_pg"), std::string::npos) << findings[0].summary;
}

TEST(CollectiveOrder, IsSilentWhereTwoLinesAreOfTwoOperations) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, kArms);
  builder.stack(0, in("all_reduce", at("main", "other(tp)")))
      .stack(1, in("all_gather", at("main", "first(dp)")));
  EXPECT_TRUE(asked("collective-order", builder.build()).empty());
}

/// As in gloo's dumps: no stacks, no lines, and the members of group 2 are unknown.
JobBuilder recorded(const std::string& operation_of_3) {
  using model::CallState;
  JobBuilder builder = job();
  builder.ranks(4).group("2", {}, "dp").history(kAll, 1, 4);
  for (int i = 1; i <= 5; ++i) {
    builder.call(
        {2, 3},
        {.operation = "all_reduce", .sequence = i, .group = "2", .state = CallState::kCompleted});
  }
  builder.call({0, 1, 2}, {.operation = "all_reduce", .sequence = 5, .state = CallState::kStarted});
  builder.call(
      3, {.operation = operation_of_3, .sequence = 6, .group = "2", .state = CallState::kStarted});
  return builder;
}

Findings asked_of_records(std::string_view kind, const JobBuilder& builder) {
  model::JobModel told = builder.build();
  told.observations.clear();
  told.progress = model::Progress::kStill;
  return asked(kind, told);
}

TEST(CollectiveOrder, ACallThatNobodyEverMadeIsOneTooMany) {
  EXPECT_TRUE(asked_of_records("collective-order", recorded("broadcast")).empty());
  EXPECT_TRUE(asked_of_records("missing-rank", recorded("broadcast")).empty());
  const Findings findings = asked_of_records("extra-rank-in-collective", recorded("broadcast"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{3});
  EXPECT_EQ(findings[0].summary,
            "only rank 3 called broadcast #6 of dp; rank 2 is waiting in all_reduce");
  const Findings order = asked_of_records("collective-order", recorded("all_reduce"));
  ASSERT_EQ(order.size(), 1U);
  EXPECT_EQ(order[0].culprits, (model::RankSet{2, 3}));  // 0 and 1 have no part in dp
  EXPECT_EQ(order[0].waiting, (model::RankSet{0, 1}));
}

TEST(CollectiveOrder, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("collective-order", told().build())),
            essence(asked("collective-order", reversed(told().build()))));
}

/// In each of three rounds, both ranks make four calls of the world and one of "control"; in the
/// fourth, rank 1 is in the call of "control" after `made` of the world, rank 0 in a call of the
/// world.
JobBuilder in_rounds(int made) {
  JobBuilder builder = job();
  builder.ranks(2).group("1", {0, 1}, "control");
  double now = 1;
  const auto call = [&](model::Rank rank, const std::string& group, std::int64_t sequence,
                        model::CallState state) {
    builder.call(rank, {.operation = group == "0" ? "all_reduce" : "all_gather",
                        .sequence = sequence,
                        .group = group,
                        .site = group == "0" ? "step@/srv/train.py:7" : "summary@/srv/train.py:9",
                        .state = state,
                        .time = now});
    now += 0.1;
  };
  constexpr int kRounds = 3;
  constexpr int kCalls = 4;
  for (int round = 0; round <= kRounds; ++round) {
    for (const model::Rank rank : {0, 1}) {
      const bool last = round == kRounds;
      const int calls = !last ? kCalls : rank == 1 ? made : made + 1;
      for (int i = 1; i <= calls; ++i) {
        call(rank, "0", round * kCalls + i,
             last && i > made ? model::CallState::kStarted : model::CallState::kCompleted);
      }
      if (!last || rank == 1) {
        call(rank, "1", round + 1,
             last ? model::CallState::kStarted : model::CallState::kCompleted);
      }
    }
  }
  builder.stack(0, in("all_reduce", "py:step@/srv/train.py:7 | py:main@/srv/train.py:20"));
  builder.stack(1, in("all_gather", "py:summary@/srv/train.py:9 | py:main@/srv/train.py:21",
                      "group=<ProcessGroup 1>"));
  return builder;
}

TEST(CollectiveOrder, IsNotWrongWhereARankLeftOutTheRestOfARound) {
  EXPECT_TRUE(asked("collective-order", in_rounds(2).build()).empty());
  EXPECT_EQ(asked("collective-order", in_rounds(0).build()).size(), 1U)
      << "it began the round with the other group";
}

/// Two ranks are in the loop's group; rank 1 is behind the loop, in the group of the reports. In an
/// earlier epoch all were in both.
JobBuilder left_behind(const std::string& line) {
  const std::string source =
      "from torch.utils.data import DataLoader\ndef fit():\n" +
      std::string("  for epoch in range(9):\n    for x in DataLoader(data):\n") +
      "      step(x)\n    " + line + "\n";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, source).group("1", {0, 1, 2}, "reports");
  const auto call = [&builder](const auto& ranks, const std::string& group, std::int64_t sequence,
                               const std::string& where) {
    builder.call(ranks, {.operation = "all_reduce",
                         .sequence = sequence,
                         .group = group,
                         .site = site("fit", where)});
  };
  call(kAll, "0", 1, "step(x)");
  call(kAll, "0", 2, "step(x)");
  call(kAll, "1", 1, line);
  call(kAll, "0", 3, "step(x)");
  call(model::RankSet{0, 2}, "0", 4, "step(x)");
  call(1, "1", 2, line);
  builder.stack({0, 2}, in("all_reduce", at("fit", "step(x)"), "group=<ProcessGroup 0>"));
  builder.stack(1, in("all_reduce", at("fit", line), "group=<ProcessGroup 1>"));
  return builder;
}

TEST(CollectiveOrder, IsNotWrongWhereARankHasLeftTheLoopOfTheOthers) {
  const model::JobModel job = left_behind("report(total)").build();
  EXPECT_TRUE(asked("collective-order", job).empty());
  const Findings findings = asked("uneven-inputs", job);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

}  // namespace
}  // namespace ddpdoctor::detectors
