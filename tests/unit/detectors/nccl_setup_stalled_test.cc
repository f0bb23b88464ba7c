// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

struct At {
  int rank;
  std::string step;
  bool finished = false;
  bool lazy = false;
};

JobBuilder setup_of(const std::vector<At>& all, std::int64_t size, const std::string& via = {},
                    const std::string& log = "a:7:9 [0] NCCL INFO NVLS Bind mem 0x7\n") {
  JobBuilder builder;
  for (const At& one : all) {
    builder.fact("nccl-setup", {{"host", std::string("a")},
                                {"gpu", std::int64_t{one.rank}},
                                {"group_rank", std::int64_t{one.rank}},
                                {"size", size},
                                {"step", one.step},
                                {"text", std::string("x")},
                                {"via", std::vector<std::string>{via}},
                                {"finished", one.finished},
                                {"lazy", one.lazy}});
  }
  return builder.log({}, log);
}

Findings stalled(const JobBuilder& builder) {
  return asked("nccl-setup-stalled", JobBuilder(builder).build());
}

TEST(NcclSetupStalled, NamesTheStepAtWhichAllRanksAre) {
  const auto findings = stalled(setup_of({{0, "nvls"}, {1, "nvls"}}, 2));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_NE(findings[0].fix.find("NCCL_NVLS_ENABLE=0"), std::string::npos);
}

TEST(NcclSetupStalled, NamesTheSwitchOfTheTransport) {
  const auto fix = [](const std::string& via) {
    return stalled(setup_of({{0, "connect"}, {1, "connect"}}, 2, via)).at(0).fix;
  };
  EXPECT_NE(fix("P2P/IPC").find("NCCL_P2P_DISABLE=1"), std::string::npos);
  EXPECT_NE(fix("P2P/CUMEM").find("NCCL_CUMEM_ENABLE=0"), std::string::npos);
  EXPECT_NE(fix("SHM/direct").find("NCCL_SHM_DISABLE=1"), std::string::npos);
  EXPECT_NE(fix("NET/IB").find("NCCL_IB_DISABLE=1"), std::string::npos);
  EXPECT_NE(fix("NET/Socket").find("NCCL_SOCKET_IFNAME"), std::string::npos);
}

TEST(NcclSetupStalled, IsLikelyIfTheJobWasInterrupted) {
  const auto findings = stalled(
      setup_of({{0, "connect"}, {1, "connect"}}, 2, "P2P/IPC",
               "a:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n^CTraceback\n"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(NcclSetupStalled, OneRankMayBeBehindAllOthers) {
  const auto findings = stalled(setup_of({{0, "connect"}, {1, "topology"}, {2, "connect"}}, 3));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 2}));
}

TEST(NcclSetupStalled, ARankInTheSetupIsBehindThoseThatConnectForTheirFirstCollective) {
  const At ahead0{.rank = 0, .step = "connect", .lazy = true};
  const At ahead2{.rank = 2, .step = "connect", .lazy = true};
  const auto findings = stalled(setup_of({ahead0, {1, "channels"}, ahead2}, 3));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
  // All are through: one that connects may exchange data with others than its neighbours do.
  EXPECT_TRUE(stalled(setup_of({{0, "finished", true}, ahead2, {1, "finished", true}}, 3)).empty());
}

TEST(NcclSetupStalled, ARankWithoutLinesIsNotAccused) {
  const auto findings = stalled(setup_of({{0, "start"}, {1, "start"}}, 4));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].summary.find("2 other ranks wrote no such line"), std::string::npos);
  // Two of three are at different steps: neither is behind all others.
  EXPECT_TRUE(stalled(setup_of({{0, "start"}, {1, "connect"}}, 3)).empty());
}

TEST(NcclSetupStalled, IsSilentOnAFinishedSetupAndARunningJob) {
  EXPECT_TRUE(stalled(setup_of({{0, "finished", true}, {1, "finished", true}}, 2)).empty());
  EXPECT_TRUE(stalled(setup_of({{0, "connect"}, {1, "connect"}}, 2, "P2P/IPC",
                               "a:7:9 [0] NCCL INFO x\nstep 1\nstep 2\nstep 3\nstep 4\n"))
                  .empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
