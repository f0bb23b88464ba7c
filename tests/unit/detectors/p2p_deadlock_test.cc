// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/model/observed_values.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(2)
      .stack(0, in("recv", "py:exchange@/srv/train.py:5", "src=1"))
      .stack(1, in("recv", "py:exchange@/srv/train.py:5", "src=0"));
  return builder;
}

TEST(P2pDeadlock, NamesBothWhoReceiveFirst) {
  const Findings findings = asked("p2p-deadlock", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
  EXPECT_EQ(findings[0].summary, "ranks 0 and 1 are both waiting in recv; neither sends");
  EXPECT_EQ(findings[0].locations.at(0).note, "rank 0 is waiting in recv from rank 1");
}

TEST(P2pDeadlock, SeesThatTheTagsOfTheTwoSidesDiffer) {
  JobBuilder builder = job();
  builder.ranks(2)
      .stack(0, in("send", "py:first@/srv/train.py:5", "dst=1; tag=1"))
      .stack(1, in("recv", "py:second@/srv/train.py:9", "src=0; tag=2"));
  const Findings findings = asked("p2p-deadlock", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("from rank 0 with tag 2"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("the same tag"), std::string::npos);
  builder.stack(1, in("recv", "py:second@/srv/train.py:9", "src=0; tag=1"));
  EXPECT_TRUE(asked("p2p-deadlock", builder.build()).empty());
}

/// Waits for a handle of batch_isend_irecv(): the one with this number, of as many as were posted.
void put_batch(JobBuilder& builder, model::Rank rank, const std::string& operation,
               const std::string& posted) {
  builder.stack(rank, "native:pthread_cond_wait | native:c10d::ProcessGroupGloo::" + operation +
                          "::wait@libtorch_cpu.so | py:exchange{P2POp=" + posted +
                          "}@/srv/halo.py:30 | py:main@/srv/train.py:9");
}

TEST(P2pDeadlock, NamesThePeerOfAHandleThatALoopOverTheBatchWaitsFor) {
  JobBuilder builder = job();
  builder.ranks(3).stack(kAll, in("barrier", "py:main@/srv/train.py:20"));
  put_batch(builder, 2, "SendWork", "isend 1, irecv 1, isend 0, irecv 0");
  model::JobModel hung = builder.build();
  put_loops(hung, 2, "exchange", {{.over = "list", .done = 3, .left = 1}});
  const Findings findings = asked("p2p-deadlock", hung);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].summary.starts_with(
      "rank 2 is waiting in send to rank 0, but rank 0 is in barrier"))
      << findings[0].summary;
  EXPECT_EQ(findings[0].locations.back().line, 20);
  put_loops(hung, 2, "exchange", {{.over = "list", .done = 2, .left = 2}});  // an irecv
  EXPECT_EQ(asked("p2p-deadlock", hung).at(0).summary, "rank 2 is waiting in send");
  put_loops(hung, 2, "exchange", {{.over = "list", .done = 1, .left = 4}});  // from another list
  EXPECT_EQ(asked("p2p-deadlock", hung).at(0).summary, "rank 2 is waiting in send");
}

TEST(P2pDeadlock, IsSilentOnACircleOfBatchesThatHaveAllBeenPosted) {
  JobBuilder builder = job();
  builder.ranks(3);
  const auto told = [&builder](bool receives) {
    for (const model::Rank rank : {0, 1, 2}) {
      const std::string takes = ", irecv " + std::to_string((rank + 2) % 3);
      put_batch(builder, rank, "SendWork",
                "isend " + std::to_string((rank + 1) % 3) + (receives ? takes : ""));
    }
    return asked("p2p-deadlock", builder.build());
  };
  EXPECT_TRUE(told(true).empty());
  const Findings findings = told(false);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1, 2}));
}

TEST(P2pDeadlock, NamesAllWhoSendWhenNobodyReceivesAndPeersAreUnknown) {
  JobBuilder builder = job();
  const std::string sends = "native:PMPI_Send@libmpi.so.40 | py:exchange@/srv/train.py:5";
  builder.ranks(4).stack({0, 1, 2, 3}, sends);
  const Findings findings = asked("p2p-deadlock", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1, 2, 3}));
  builder.stack(3, "py:work@/srv/train.py:50").computing(3);
  EXPECT_TRUE(asked("p2p-deadlock", builder.build()).empty());
}

TEST(P2pDeadlock, IsSilentOnARingWhoseMessagesAreAllPosted) {
  JobBuilder builder = job();
  builder.ranks(3);
  for (const model::Rank rank : {0, 1, 2}) {
    builder.stack(rank, "native:PMPI_Waitall@libmpi.so.40 | py:ring@/srv/train.py:5");
    builder.call(rank, {.operation = "send",
                        .sequence = 1,
                        .peer = (rank + 1) % 3,
                        .state = model::CallState::kStarted});
    builder.call(rank, {.operation = "recv",
                        .sequence = 2,
                        .peer = (rank + 2) % 3,
                        .state = model::CallState::kStarted});
  }
  EXPECT_TRUE(asked("p2p-deadlock", builder.build()).empty());
}

TEST(P2pDeadlock, NamesEveryMemberOfARing) {
  JobBuilder builder = job();
  builder.ranks(3);
  for (const model::Rank rank : {0, 1, 2}) {
    builder.stack(rank,
                  in("send", "py:ring@/srv/train.py:5", "dst=" + std::to_string((rank + 1) % 3)));
  }
  const Findings findings = asked("p2p-deadlock", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1, 2}));
}

TEST(P2pDeadlock, NamesTheReceiverWhosePartnerWentElsewhere) {
  JobBuilder builder = job();
  builder.ranks(3)
      .stack({0, 1}, in("barrier", "py:main@/srv/train.py:20"))
      .stack(2, in("recv", "py:stage@/srv/train.py:9", "src=1"));
  const Findings findings = asked("p2p-deadlock", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

/// Rank 0 sends on line `line` of a loop over Stream(stage), rank 1 is in a broadcast after it.
void expect_leaver(const std::string& loop, const std::string& below, int line) {
  const std::string at = "py:run@/srv/run.py:";
  JobBuilder builder = job();
  builder.ranks(2)
      .source("/srv/run.py", "def run(stage):\n  for e in range(9):\n" + loop + "    done(stage)\n")
      .stack(0,
             in("send", "py:step@/srv/step.py:7 | " + below + at + std::to_string(line), "dst=1"))
      .stack(1, in("broadcast", at + std::to_string(line + 1)));
  const Findings findings = asked("p2p-deadlock", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
  EXPECT_EQ(findings[0].waiting, model::RankSet{0});
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_TRUE(findings[0].summary.starts_with("rank 1 left `for x in Stream(stage)` (run.py:3)"))
      << findings[0].summary;
}

TEST(P2pDeadlock, TellsWhoLeftTheLoopOfTheExchange) {
  expect_leaver("    for x in Stream(stage):\n      step(x)\n", "", 4);
  expect_leaver("    all = [step(x) for x in Stream(stage)]\n", "", 3);
  expect_leaver("    all = [step(x) for x in Stream(stage)]\n",
                "py:run.<locals>.<listcomp>@/srv/run.py:3 | ", 3);
}

/// A pipeline of three stages; the loop of each goes over this number of items.
model::JobModel pipeline(const std::vector<std::int64_t>& items) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source("/srv/run.py",
              "def run(n):\n  for i in range(n):\n    dist.recv(x, me - 1)\n  dist.barrier()\n")
      .stack({0, 1}, in("barrier", "py:run@/srv/run.py:4"))
      .stack(2, in("recv", "py:run@/srv/run.py:3", "src=1"));
  model::JobModel told = builder.build();
  for (model::Rank rank = 0; rank < 3; ++rank) {
    told.facts.push_back(model::fact_of({.rank = rank,
                                         .role = model::ValueRole::kLoop,
                                         .file = "/srv/run.py",
                                         .line = 2,
                                         .function = "run",
                                         .at = 3,
                                         .expression = "range(n)",
                                         .value = {},
                                         .state = model::ValueState::kKnown,
                                         .reason = {},
                                         .items = items[static_cast<std::size_t>(rank)]}));
  }
  return told;
}

TEST(P2pDeadlock, BlamesTheRankWhoseLoopIsUnlikeAllOthers) {
  const Findings findings = asked("p2p-deadlock", pipeline({4, 4, 5}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].summary,
            "rank 2 goes over 5 items in `for i in range(n)` (run.py:2), ranks 0 and 1 over 4; "
            "rank 2 is waiting in recv");
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
}

TEST(P2pDeadlock, BlamesWhoLeftTheLoopIfTheLengthsOfTheOthersDiffer) {
  const Findings findings = asked("p2p-deadlock", pipeline({5, 4, 5}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
}

TEST(P2pDeadlock, SeesARankOfAGroupTakenForARankOfTheJob) {
  JobBuilder builder = job();
  builder.ranks(4)
      .group("1", {0, 1})
      .group("2", {2, 3})
      .stack({0, 1, 3}, in("barrier", "py:main@/srv/train.py:20"))
      .stack(2, in("send", "py:push@/srv/train.py:9", "dst=1"));
  const Findings findings = asked("p2p-deadlock", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].fix.find("group_dst="), std::string::npos);
}

TEST(P2pDeadlock, IsSilentOnATransferUnderWayAndOnAPartnerThatWorks) {
  JobBuilder transfer = told();
  transfer.stack(1, in("send", "py:exchange@/srv/train.py:6", "dst=0"));
  EXPECT_TRUE(asked("p2p-deadlock", transfer.build()).empty());
  JobBuilder late = told();
  late.python(1, kTrain, 9, "work").computing(1).progress(model::Progress::kStill);
  EXPECT_TRUE(asked("p2p-deadlock", late.build()).empty());
  EXPECT_TRUE(asked("p2p-deadlock", moving(told().build())).empty());
}

TEST(P2pDeadlock, AccusesNobodyWhenThePartnerIsUnobserved) {
  JobBuilder builder = told();
  builder.unobserved(1);
  EXPECT_TRUE(asked("p2p-deadlock", builder.build()).empty());
}

TEST(P2pDeadlock, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("p2p-deadlock", told().build())),
            essence(asked("p2p-deadlock", records_reversed(told().build()))));
}

TEST(P2pDeadlock, AccusesTheOneThatTurnsTheOtherWay) {
  const auto findings =
      asked("p2p-deadlock", job()
                                .ranks(3)
                                .recv(0, 2, 1, "ring@/srv/train.py:5")
                                .send(1, 0, 1, "ring@/srv/train.py:8")
                                .recv(2, 1, 1, "ring@/srv/train.py:7")
                                .stack(0,
                                       "py:recv@/opt/site-packages/torch/distributed/"
                                       "distributed_c10d.py:1 | py:ring@/srv/train.py:5")
                                .stack(1,
                                       "py:send@/opt/site-packages/torch/distributed/"
                                       "distributed_c10d.py:1 | py:ring@/srv/train.py:8")
                                .stack(2,
                                       "py:recv@/opt/site-packages/torch/distributed/"
                                       "distributed_c10d.py:1 | py:ring@/srv/train.py:7")
                                .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 8);
  EXPECT_EQ(
      findings[0].fix,
      "Check the peer in send (train.py:8): rank 1 sends to rank 0, but rank 2 is the one that "
      "receives from rank 1.");
}

// Rank 1 also sends to rank 2: it may have the wrong order and the right peers, as may the others.
TEST(P2pDeadlock, AccusesTheWholeCircleIfOneOfThemHasSeveralPeers) {
  const std::string c10d = "@/opt/site-packages/torch/distributed/distributed_c10d.py:1 | ";
  const auto findings =
      asked("p2p-deadlock", job()
                                .ranks(3)
                                .send(1, 2, 1, "ring@/srv/train.py:8")
                                .recv(2, 1, 1, "ring@/srv/train.py:7")
                                .recv(0, 2, 1, "ring@/srv/train.py:5")
                                .send(1, 0, 2, "ring@/srv/train.py:8")
                                .recv(2, 1, 2, "ring@/srv/train.py:7")
                                .stack(0, "py:recv" + c10d + "py:ring@/srv/train.py:5")
                                .stack(1, "py:send" + c10d + "py:ring@/srv/train.py:8")
                                .stack(2, "py:recv" + c10d + "py:ring@/srv/train.py:7")
                                .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1, 2}));
}

TEST(P2pDeadlock, SeesThatEverybodyReceives) {
  const std::string recv =
      "py:recv@/opt/site-packages/torch/distributed/distributed_c10d.py:2400 | ";
  const auto told = [&recv](const std::string& other) {
    return asked("p2p-deadlock", job()
                                     .ranks(2)
                                     .stack(0, recv + "py:stage0@/srv/a.py:8")
                                     .stack(1, other + "py:stage1@/srv/a.py:19")
                                     .build());
  };
  const Findings findings = told(recv);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
  EXPECT_TRUE(told("py:read@/srv/io.py:1 | ").empty());
}

TEST(P2pDeadlock, SeesAPairThatIsCountedAlikeAndTaggedApart) {
  const auto told = [](const char* tag) {
    return asked(
        "p2p-deadlock",
        job()
            .ranks(2)
            .send(0, 1, 1, "main@/srv/train.py:20")
            .recv(1, 0, 1, "main@/srv/train.py:22")
            .stack(0, in("send", "py:main@/srv/train.py:20", "dst=1; tag=6"))
            .stack(1, in("recv", "py:main@/srv/train.py:22", std::string("src=0; tag=") + tag))
            .build());
  };
  const Findings findings = told("5");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
  EXPECT_TRUE(told("6").empty());  // in flight
}

}  // namespace
}  // namespace ddpdoctor::detectors
