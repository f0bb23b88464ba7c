// SPDX-License-Identifier: Apache-2.0
// Where NCCL's INFO lines show each GPU in the setup of a communicator.
#include <string>

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

const model::Fact& setup(const model::JobModel& job, std::size_t index = 0) {
  const auto all = model::facts(job, "nccl-setup");
  EXPECT_GT(all.size(), index);
  return *all.at(index);
}

const std::string kStart =
    "a:7:9 [0] NCCL INFO comm 0xa0 rank 2 nranks 4 cudaDev 0 nvmlDev 0 busId 19000 commId 0x7 - "
    "Init START\n";
const std::string kComplete =
    "a:7:9 [0] NCCL INFO comm 0xa0 rank 2 nranks 4 cudaDev 0 nvmlDev 0 busId 19000 commId 0x7 - "
    "Init COMPLETE\n";

TEST(NcclSetup, TheLastStepOfAGpuIsItsPosition) {
  const auto job = read_log(kStart + "a:7:9 [0] NCCL INFO Trees [0] 3/-1/-1->2->1\n" +
                            "a:7:9 [0] NCCL INFO Channel 00/0 : 2[0] -> 3[1] via P2P/CUMEM/read\n" +
                            "a:7:12 [0] NCCL INFO [Proxy Service] Device 0 CPU core 17\n");
  const model::Fact& fact = setup(job);
  EXPECT_EQ(fact.text("step"), "connect");
  EXPECT_EQ(fact.number("group_rank"), 2);
  EXPECT_EQ(fact.number("size"), 4);
  EXPECT_EQ(fact.list("via"), std::vector<std::string>{"P2P/CUMEM"});
  EXPECT_EQ(fact.flag("finished"), false);
}

TEST(NcclSetup, OlderReleasesNameTheRankInTheirTrees) {
  const auto job = read_log(
      "a:7:9 [0] NCCL INFO Channel 00/02 :    0   1\n"
      "a:7:9 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1 [1] 1/-1/-1->0->-1\n"
      "a:7:9 [0] NCCL INFO Channel 00 : 0[1a000] -> 1[3b000] via direct shared memory\n");
  EXPECT_EQ(setup(job).number("group_rank"), 0);
  EXPECT_EQ(setup(job).number("size"), 2);
  EXPECT_EQ(setup(job).list("via"), std::vector<std::string>{"direct"});
}

TEST(NcclSetup, IsFinishedByItsLastLineOrACollective) {
  EXPECT_EQ(setup(read_log(kStart + kComplete)).flag("finished"), true);
  EXPECT_EQ(setup(read_log("a:7:9 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1\n"
                           "a:7:9 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7 recvbuff 0x7\n"))
                .flag("finished"),
            true);
}

TEST(NcclSetup, ConnectsItsRingForTheFirstCollective) {
  const std::string begun =
      kStart + kComplete + "a:7:9 [0] NCCL INFO Channel 00/0 : 2[0] -> 3[1] via P2P/IPC\n";
  EXPECT_EQ(setup(read_log(begun)).flag("lazy"), true);
  EXPECT_EQ(setup(read_log(begun + "a:7:9 [0] NCCL INFO Connected all rings, use ring PXN 0\n"))
                .flag("finished"),
            true);
  EXPECT_EQ(setup(read_log(kStart + kComplete +
                           "a:7:9 [0] NCCL INFO Channel 00/1 : 2[0] -> 3[1] via P2P/IPC\n"))
                .flag("finished"),
            true);
}

TEST(NcclSetup, KnowsAFailedCall) {
  EXPECT_EQ(
      setup(read_log(kStart + "a:7:9 [0] NCCL INFO transport/nvls.cc:157 -> 1\n")).flag("failed"),
      true);
  EXPECT_EQ(setup(read_log(kStart + "a:7:9 [0] NCCL INFO TUNER/Plugin: Could not find: x.so\n"))
                .flag("failed"),
            false);
}

}  // namespace
}  // namespace ddpdoctor::imports
