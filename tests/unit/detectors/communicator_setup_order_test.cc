// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "communicator-setup-order";

/// `setup` of NCCL inside a collective of a group, called from the user's frames.
std::string making(const std::string& setup, const std::string& operation, const std::string& user,
                   const std::string& group) {
  return "native:recvmsg@libc.so.6 | native:bootstrapAllGather@libnccl.so.2 | native:" + setup +
         "@libnccl.so.2 | native:c10d::ProcessGroupNCCL::initNCCLComm@libtorch_cuda.so | py:" +
         operation + "{group=<ProcessGroup " + group +
         ">}@/v/site-packages/torch/distributed/distributed_c10d.py:3100 | " + user;
}

const std::string kRefit = "py:refit@/srv/sync.py:20 | py:main@/srv/train.py:9";
const std::string kStep = "py:step@/srv/train.py:30 | py:main@/srv/train.py:8";

/// Rank 0 splits the world to make a group of its own; the others continue training.
JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl").group("1", {0}, "refit");
  builder.stack(kAll, in("all_reduce", kStep, "group=<ProcessGroup 0>"));
  builder.stack(0, making("ncclCommSplit", "broadcast", kRefit, "1"));
  return builder;
}

TEST(CommunicatorSetupOrder, NamesTheRankThatSplitsAlone) {
  const Findings findings = asked(kKind, told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{0});
  EXPECT_EQ(findings[0].waiting, (model::RankSet{1, 2, 3}));
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/sync.py");
  EXPECT_NE(findings[0].summary.find("ncclCommSplit"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].fix.find("device_id="), std::string::npos) << findings[0].fix;
}

TEST(CommunicatorSetupOrder, NamesTheMemberThatIsElsewhere) {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl");
  builder.stack(kAll, making("ncclCommInitRankConfig", "all_reduce", kStep, "0"));
  builder.stack(2, in("broadcast", kRefit, "group=<ProcessGroup 0>"));
  const Findings findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/sync.py");
}

TEST(CommunicatorSetupOrder, SeesTwoCommunicatorsInTheMaking) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").group("1", {0, 1}, "tp").group("2", {0, 1}, "dp");
  builder.stack(0, making("ncclCommInitRankConfig", "all_reduce", kStep, "1"));
  builder.stack(1, making("ncclCommInitRankConfig", "all_reduce", kRefit, "2"));
  const Findings findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_NE(findings[0].summary.find("tp"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].summary.find("dp"), std::string::npos) << findings[0].summary;
}

TEST(CommunicatorSetupOrder, SeesARankThatWaitsInTheStoreForTheIdOfAnother) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").group("1", {0, 1}, "tp").group("2", {0, 1}, "dp");
  builder.stack(0, making("ncclCommInitRank", "all_reduce", kStep, "1"));
  builder.stack(1,
                "native:poll | native:c10d::TCPStore::get@libtorch_cpu.so | "
                "native:c10d::ProcessGroupNCCL::initNCCLComm@libtorch_cuda.so | "
                "py:all_reduce{group=<ProcessGroup 2>}@/v/site-packages/torch/distributed/"
                "distributed_c10d.py:3100 | " +
                    kStep);
  const Findings findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
}

TEST(CommunicatorSetupOrder, IsSilentWhileAllMembersOfOneCommunicatorMakeIt) {
  const auto told = [](const std::string& group_of_pair) {
    JobBuilder builder = job();
    builder.ranks(4).backend("nccl").group("1", {0, 2}, "pp").group("2", {0, 1, 2, 3}, "dp");
    builder.stack(kAll, making("broadcastUniqueNCCLID", "all_reduce", kStep, "2"));
    builder.stack({0, 2}, making("ncclCommInitRank", "broadcast", kRefit, group_of_pair));
    return asked(kKind, builder.build());
  };
  EXPECT_TRUE(told("1").empty());  // ranks 1 and 3 wait until both are ready
  EXPECT_EQ(told("0").size(), 1U);
}

TEST(CommunicatorSetupOrder, SeesAWindowThatSomeRegister) {
  JobBuilder builder = told();
  builder.stack(0, making("ncclCommWindowRegister", "broadcast", kRefit, "0"));
  const Findings findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("registering a window"), std::string::npos)
      << findings[0].summary;
}

TEST(CommunicatorSetupOrder, IsNoneWhereAllMembersAreThere) {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl").group("1", {0, 1}, "tp");
  builder.stack(kAll, in("all_reduce", kStep, "group=<ProcessGroup 0>"));
  builder.stack({0, 1}, making("ncclCommInitRankConfig", "all_reduce", kRefit, "1"));
  EXPECT_TRUE(asked(kKind, builder.build()).empty()) << "both members of tp are in it";
  JobBuilder all = job();
  all.ranks(4).backend("nccl").stack(kAll,
                                     making("ncclCommInitRankConfig", "all_reduce", kStep, "0"));
  EXPECT_TRUE(asked(kKind, all.build()).empty());
}

TEST(CommunicatorSetupOrder, LeavesRanksThatHaveNotStartedToRendezvous) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl");
  builder.stack(0, making("ncclCommInitRankConfig", "all_reduce", kStep, "0"));
  builder.stack(1,
                "native:poll | "
                "py:init_process_group@/v/site-packages/torch/distributed/"
                "distributed_c10d.py:1700 | py:main@/srv/train.py:2");
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

TEST(CommunicatorSetupOrder, LeavesARankWithATroubleOfItsOwnToThatCause) {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl");
  builder.stack(kAll, making("ncclCommInitRankConfig", "all_reduce", kStep, "0"));
  builder.stack(2, "native:read@libc.so.6 | py:load@/srv/train.py:12 | py:main@/srv/train.py:4")
      .state(2, 'D', "nfs_wait_bit_killable");
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

TEST(CommunicatorSetupOrder, IsSilentWhileSomebodyWorksOrTheJobMoves) {
  JobBuilder builder = told();
  builder.computing(3);
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
  EXPECT_TRUE(asked(kKind, moving(told().build())).empty());
}

TEST(CommunicatorSetupOrder, IsOnlyPossibleWhenARankIsUnobservedOrGone) {
  JobBuilder unseen = told();
  unseen.unobserved(3);
  EXPECT_TRUE(nothing_likely(asked(kKind, unseen.build())));
  JobBuilder gone = told();
  gone.killed(3, 9);
  EXPECT_TRUE(nothing_likely(asked(kKind, gone.build())));
}

TEST(CommunicatorSetupOrder, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked(kKind, told().build())), essence(asked(kKind, reversed(told().build()))));
}

TEST(CommunicatorSetupOrder, DoesNotKnowTheMembersOfAFrameworksOwnCommunicator) {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl").stack(
      kAll,
      "py:ncclCommWindowRegister@/v/site-packages/vllm/distributed/device_communicators/"
      "pynccl_wrapper.py:545 | py:enter@/srv/train.py:8 | py:main@/srv/train.py:4");
  builder.stack(3, in("all_reduce", "py:step@/srv/train.py:30"));
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
