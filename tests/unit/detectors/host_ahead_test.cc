// SPDX-License-Identifier: Apache-2.0
// Hosts that ran ahead of their devices, as on the simulated device: where a host is says little,
// what its device is stuck in says more, and the source behind it the rest.
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

/// All hosts wait for one value; the loop around that line has `test` in it.
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

TEST(HostAhead, TwoDecisionsOrNoneAreNotToldApart) {
  const std::string second = "        if random.random() > 0.5:\n            dist.barrier()\n";
  for (const model::JobModel& told :
       {at_one_line("        if random.random() > 0.9:\n", second).build(),
        at_one_line("        if len(loader) > 3:\n").progress(model::Progress::kMoving).build(),
        at_one_line("        if True:\n").build()}) {
    EXPECT_TRUE(asked("divergent-branch", told).empty());
    EXPECT_TRUE(asked("rank-conditional-collective", told).empty());
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

}  // namespace
}  // namespace ddpdoctor::detectors
