// SPDX-License-Identifier: Apache-2.0
// Hosts that ran ahead of their devices, as on the simulated device: a host's line says little, the
// call in which its device waits says more, and the source around both completes it.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

std::string spinning(const std::string& operation, const std::string& user) {
  return "native:??@libcuda.so.1 | native:cuStreamSynchronize@libcuda.so.1 | "
         "native:cudaStreamSynchronize@libcudart.so.12 | "
         "native:c10d::ProcessGroupNCCL::WorkNCCL::wait@libtorch_cuda.so | py:" +
         operation + "@/v/site-packages/torch/distributed/distributed_c10d.py:5356 | " + user;
}

JobBuilder behind_a_receive() {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl").state(kAll, 'R');
  builder.stack(kAll, spinning("barrier", "py:main@/srv/train.py:27"));
  builder.call(kAll, {.operation = "barrier",
                      .sequence = 2,
                      .site = "main@/srv/train.py:27",
                      .state = model::CallState::kStarted,
                      .time = 20});
  builder.call(2, {.operation = "recv",
                   .sequence = 5,
                   .site = "run_stage@/srv/train.py:14 | main@/srv/train.py:26",
                   .peer = 1,
                   .state = model::CallState::kStarted,
                   .time = 10});
  return builder;
}

TEST(HostAhead, AReceiveThatNobodySentKeepsTheBarrierBehindItFromEnding) {
  const model::JobModel told = behind_a_receive().build();
  const Findings findings = asked("p2p-deadlock", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 14);
  EXPECT_TRUE(asked("gpu-stalled", told).empty()) << "the transport does what it should";
}

TEST(HostAhead, AMessageWhoseCommunicatorIsBeingMadeIsNotMatched) {
  JobBuilder builder = job();
  const std::string init =
      "native:poll | native:ncclCommInitRank@libnccl.so.2 | "
      "native:c10d::ProcessGroupNCCL::pointToPoint@libtorch_cuda.so | py:";
  const std::string c10d = "@/v/site-packages/torch/distributed/distributed_c10d.py:2709 | ";
  builder.ranks(3).backend("nccl");
  builder.stack(0, init + "recv{src=2}" + c10d + "py:pass_on@/srv/train.py:19");
  builder.stack(1,
                "native:??@libcuda.so.1 | py:send{dst=0}" + c10d + "py:pass_on@/srv/train.py:22");
  builder.stack(2, init + "recv{src=1}" + c10d + "py:pass_on@/srv/train.py:21");
  builder.call(
      0, {.operation = "send", .sequence = 1, .peer = 1, .state = model::CallState::kCompleted});
  builder.call(
      1, {.operation = "recv", .sequence = 1, .peer = 0, .state = model::CallState::kCompleted});
  builder.call(
      1, {.operation = "send", .sequence = 2, .peer = 0, .state = model::CallState::kStarted});
  const Findings findings = asked("p2p-deadlock", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

/// All hosts wait for one value; the loop around that line contains the condition `test`.
JobBuilder at_one_line(const std::string& test, const std::string& more = {}) {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl").state(kAll, 'R').looked_once();
  builder.source(kTrain,
                 "import random\nimport torch.distributed as dist\n"
                 "def evaluate(score):\n    dist.all_gather(scores, score)\n"
                 "def main(model, loader):\n    rank = dist.get_rank()\n"
                 "    for batch in loader:\n        loss = model(batch).item()\n" +
                     test + "            evaluate(loss)\n" + more);
  builder.stack(kAll, at("main", "loss = model(batch).item()"));
  return builder;
}

TEST(HostAhead, TheOneDecisionThatLeadsToACollectiveIsTold) {
  const model::JobModel told = at_one_line("        if random.random() > 0.9:\n").build();
  const Findings findings = asked("divergent-branch", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_TRUE(findings[0].culprits.empty()) << "who took it, nobody saw";
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
  EXPECT_EQ(findings[0].locations.at(1).line, 9);
  EXPECT_TRUE(asked("rank-conditional-collective", told).empty());
}

TEST(HostAhead, ATestOfTheRankSaysWhoTookIt) {
  const model::JobModel told = at_one_line("        if rank == 1:\n").build();
  const Findings findings = asked("rank-conditional-collective", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 2}));
}

TEST(HostAhead, AnEarlyReturnLeadsToItThoseWhoDoNotTakeIt) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").state(kAll, 'R').looked_once();
  builder.source(kTrain,
                 "import torch.distributed as dist\n"
                 "def log(rank, loss):\n    if rank != 0:\n        return\n"
                 "    dist.barrier()\n"
                 "def main(model, loader):\n    for batch in loader:\n"
                 "        loss = model(batch).item()\n        log(dist.get_rank(), loss)\n");
  builder.stack(kAll, at("main", "loss = model(batch).item()"));
  const Findings findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
}

TEST(HostAhead, OfTwoDecisionsTheNearestIsToldAndTheOtherNamed) {
  const std::string second = "        if random.random() > 0.5:\n            dist.barrier()\n";
  const Findings findings =
      asked("divergent-branch", at_one_line("        if random.random() > 0.9:\n", second).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].locations.at(1).line, 11);
  ASSERT_FALSE(findings[0].evidence.empty());
  EXPECT_NE(findings[0].evidence[0].text.find("0.9"), std::string::npos);
}

TEST(HostAhead, WithoutADecisionOrWhileTheJobMovesNothingIsTold) {
  for (const model::JobModel& told :
       {at_one_line("        if len(loader) > 3:\n").progress(model::Progress::kMoving).build(),
        at_one_line("        if True:\n").build()}) {
    EXPECT_TRUE(asked("divergent-branch", told).empty());
    EXPECT_TRUE(asked("rank-conditional-collective", told).empty());
  }
}

/// All ranks wait in the gather at the end of `body`, which is the body of main()'s loop.
JobBuilder in_the_gather(const std::string& body, const std::string& more = {}) {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl").looked_once();
  builder.source(kTrain, "import random\nimport torch\nimport torch.distributed as dist\n" + more +
                             "def main(rank, model, loader):\n    rank = dist.get_rank()\n"
                             "    for step in range(60):\n" +
                             body + "        dist.all_gather_object(seen, step)\n");
  builder.stack(kAll,
                "py:all_gather_object@/v/site-packages/torch/distributed/"
                "distributed_c10d.py:3514 | " +
                    at("main", "dist.all_gather_object"));
  return builder;
}

TEST(HostAhead, AnExceptionThatIsCaughtMaySkipACall) {
  const Findings findings =
      asked("divergent-branch", in_the_gather("        try:\n"
                                              "            dist.all_reduce(model(batch))\n"
                                              "        except RuntimeError:\n"
                                              "            continue\n")
                                    .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

TEST(HostAhead, ALoopOverElementsOfTheRankMakesAnotherNumberOfCalls) {
  const std::string loop =
      "        for name in sorted(losses):\n            dist.all_reduce(losses[name])\n";
  const std::string own =
      "        losses = {'cls': 1}\n        if rank == 1:\n"
      "            losses['mask'] = 1\n";
  const Findings findings = asked("collective-count", in_the_gather(own + loop).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_TRUE(
      asked("collective-count", in_the_gather("        losses = {'cls': 1}\n" + loop).build())
          .empty());
}

TEST(HostAhead, ALoopOverTheRanksOwnBatchesMayEndEarlier) {
  const std::string train =
      "def train(rank, data):\n    for x in data[rank::3]:\n"
      "        dist.all_reduce(total(x))\n";
  const Findings findings =
      asked("uneven-inputs", in_the_gather("        train(rank, data)\n", train).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].locations.at(0).line, 11);
}

void at_iteration(JobBuilder& builder, model::Rank rank, const std::string& iteration) {
  builder.fact("value",
               {{"role", std::string("loop")},
                {"file", std::string(kTrain)},
                {"line", std::int64_t{6}},
                {"function", std::string("main")},
                {"at", std::int64_t{9}},
                {"expression", std::string("range(60)")},
                {"value", iteration},
                {"state", std::string("known")}},
               rank);
}

TEST(HostAhead, ValuesThatDifferSayWhoAndAreLikely) {
  JobBuilder builder = in_the_gather("        if self.early:\n            dist.barrier()\n");
  builder.progress(model::Progress::kStill);
  for (const model::Rank rank : {0, 1, 2}) {
    builder.fact("value",
                 {{"role", std::string("decision")},
                  {"file", std::string(kTrain)},
                  {"line", std::int64_t{7}},
                  {"function", std::string("main")},
                  {"at", std::int64_t{9}},
                  {"expression", std::string("self.early")},
                  {"value", std::string(rank == 2 ? "True" : "False")},
                  {"state", std::string("known")}},
                 rank);
    at_iteration(builder, rank, "iteration 5 of 60");
  }
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  at_iteration(builder, 0, "iteration 6 of 60");
  EXPECT_TRUE(asked("divergent-branch", builder.build()).empty()) << "of another step";
}

TEST(HostAhead, ATestOfTheRankBeforeAMessageOrAnErrorPartsNobody) {
  for (const char* body :
       {"        if rank == 0:\n            dist.send(x, 1)\n        else:\n"
        "            dist.recv(x, 0)\n",
        "        if rank > 9:\n            raise ValueError(dist.barrier())\n",
        "        if rank == 0:\n            dist.broadcast(a, 0)\n        else:\n"
        "            dist.broadcast(b, 0)\n"}) {
    EXPECT_TRUE(asked("rank-conditional-collective", in_the_gather(body).build()).empty()) << body;
  }
}

TEST(HostAhead, ACallInAGroupOfItsOwnIsNotForAll) {
  const model::JobModel told =
      at_one_line("        if True:\n",
                  "        if rank == 0:\n            dist.barrier(group=leaders)\n")
          .build();
  EXPECT_TRUE(asked("rank-conditional-collective", told).empty());
}

TEST(HostAhead, WhatStandsBehindThatLineHasNotBeenReached) {
  const model::JobModel told =
      at_one_line("        if True:\n", "    if rank == 0:\n        dist.barrier()\n").build();
  EXPECT_TRUE(asked("rank-conditional-collective", told).empty());
}

TEST(HostAhead, ValuesOfTwoDecisionsProveNeither) {
  JobBuilder builder = in_the_gather(
      "        if self.early:\n            dist.barrier()\n"
      "        if self.late:\n            dist.barrier()\n");
  builder.progress(model::Progress::kStill);
  for (const model::Rank rank : {0, 1, 2}) {
    for (const auto& [line, expression] : {std::pair(7, "self.early"), std::pair(9, "self.late")}) {
      builder.fact("value",
                   {{"role", std::string("decision")},
                    {"file", std::string(kTrain)},
                    {"line", std::int64_t{line}},
                    {"function", std::string("main")},
                    {"at", std::int64_t{11}},
                    {"expression", std::string(expression)},
                    {"value", std::string(rank == 2 ? "True" : "False")},
                    {"state", std::string("known")}},
                   rank);
    }
    at_iteration(builder, rank, "iteration 5 of 60");
  }
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
}

TEST(HostAhead, ACounterThatDiffersSaysOnlyThatHostsRanAhead) {
  JobBuilder builder = in_the_gather("        if step % 15 == 14:\n            dist.barrier()\n");
  builder.progress(model::Progress::kStill);
  for (const model::Rank rank : {0, 1, 2}) {
    builder.fact("value",
                 {{"role", std::string("decision")},
                  {"file", std::string(kTrain)},
                  {"line", std::int64_t{7}},
                  {"function", std::string("main")},
                  {"at", std::int64_t{9}},
                  {"expression", std::string("step % 15 == 14")},
                  {"value", std::string(rank == 0 ? "True" : "False")},
                  {"state", std::string("known")}},
                 rank);
  }
  EXPECT_TRUE(asked("divergent-branch", builder.build()).empty());
}

TEST(HostAhead, JoinIsMadeForLoopsOfDifferentLength) {
  const std::string train =
      "from torch.distributed.algorithms.join import Join\ndef train(rank, data):\n"
      "    with Join([model]):\n        for x in data[rank::3]:\n"
      "            dist.all_reduce(total(x))\n";
  EXPECT_TRUE(
      asked("uneven-inputs", in_the_gather("        train(rank, data)\n", train).build()).empty());
}

TEST(HostAhead, ACallInAGroupThatIsPassedByPositionIsNotForAll) {
  for (const char* call : {"dist.all_reduce(x, op, leaders)", "dist.barrier(leaders)"}) {
    const std::string body = std::string("        if rank == 0:\n            ") + call + "\n";
    EXPECT_TRUE(asked("rank-conditional-collective", in_the_gather(body).build()).empty()) << call;
  }
}

TEST(HostAhead, AMadeGroupUnderATestOfTheRankIsMissedByTheOthers) {
  const Findings findings = asked(
      "new-group-subset",
      in_the_gather("        if rank < 1 or fast:\n            g = dist.new_group([0])\n").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1, 2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
}

TEST(HostAhead, WhoWaitsForItsGpuInTheLineOfACallIsNotMissingFromIt) {
  JobBuilder builder = in_the_gather("        loss = model(batch)\n");
  builder.progress(model::Progress::kStill).state({0, 2}, 'R');
  builder.stack({0, 2},
                "native:??@libcuda.so.1 | native:cuStreamSynchronize@libcuda.so.1 | "
                "native:at::native::_local_scalar_dense_cuda@libtorch_cuda.so | " +
                    at("main", "dist.all_gather_object"));
  EXPECT_TRUE(asked("extra-rank-in-collective", builder.build()).empty());
  EXPECT_TRUE(asked("missing-rank", builder.build()).empty());
}

TEST(HostAhead, AnotherWorldSizeShowsInTheFirstCall) {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl").group("0:0-3", {0, 1, 2, 3}, "default_pg").state(kAll, 'R');
  builder.stack(kAll, spinning("all_reduce", "py:main@/srv/train.py:11"));
  builder.environment(kAll, "WORLD_SIZE", "3").environment(2, "WORLD_SIZE", "4");
  const Findings findings = asked("environment-differs", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(asked("new-group-subset", builder.build()).empty());
}

constexpr const char* kReads =
    "native:??@libcuda.so.1 | native:cuStreamSynchronize@libcuda.so.1 | "
    "native:at::native::_local_scalar_dense_cuda@libtorch_cuda.so | "
    "py:exchange@/srv/train.py:9 | py:main@/srv/train.py:20";

/// Each rank posts a receive, then a send, at these lines, and reads what it received.
model::JobModel both_receive(const std::string& recv, const std::string& send,
                             const std::string& backend = "nccl") {
  JobBuilder builder = job();
  builder.ranks(2).backend(backend).state(kAll, 'R').stack(kAll, kReads);
  for (const model::Rank rank : {0, 1}) {
    builder.call(rank, {.operation = "recv",
                        .sequence = 1,
                        .site = recv,
                        .peer = 1 - rank,
                        .state = model::CallState::kEnqueued,
                        .time = 10});
    builder.call(rank, {.operation = "send",
                        .sequence = 2,
                        .site = send,
                        .peer = 1 - rank,
                        .state = model::CallState::kEnqueued,
                        .time = 11});
  }
  return builder.build();
}

TEST(HostAhead, ASendThatIsQueuedBehindTheReceiveDoesNotServeThePeer) {
  const Findings findings =
      asked("p2p-deadlock", both_receive("exchange@/srv/train.py:6", "exchange@/srv/train.py:7"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 6);
}

TEST(HostAhead, MessagesOfOneLineMayBeOneBatch) {
  EXPECT_TRUE(
      asked("p2p-deadlock", both_receive("exchange@/srv/train.py:6", "exchange@/srv/train.py:6"))
          .empty());
}

TEST(HostAhead, ARankWhoseGpuWaitsForSomethingUnknownIsOnlyPossiblyMissing) {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl").state(0, 'R').stack(0, kReads);
  for (const model::Rank rank : {1, 2}) {
    builder.stack(rank, in("broadcast", "py:main@/srv/train.py:30"));
  }
  const Findings findings = asked("missing-rank", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
}

}  // namespace
}  // namespace ddpdoctor::detectors
