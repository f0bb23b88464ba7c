// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;
using Fields = std::map<std::string, model::FactValue>;

constexpr std::string_view kKind = "fabric-fault";

Fields transfer(const std::string& host, const std::string& peer, std::int64_t status = 12) {
  return {{"event", std::string("completion-error")},
          {"source", std::string("nccl")},
          {"text", "NET/IB : Got completion from peer " + peer},
          {"host", host},
          {"device", std::string("mlx5_3")},
          {"peer", peer},
          {"local", std::string("fe80::1")},
          {"remote", std::string("fe80::2")},
          {"status", status},
          {"vendor_error", std::int64_t{129}},
          {"count", std::int64_t{3}}};
}

Fields port_down() {
  return {{"event", std::string("port-down")},
          {"source", std::string("kernel")},
          {"text", std::string("mlx5_core 0000:a1:00.0 mlx5_3: Link down")},
          {"host", std::string("node7")},
          {"device", std::string("mlx5_3")},
          {"port", std::int64_t{1}}};
}

JobBuilder hung() {
  return job().ranks(2).stack(kAll, kInBarrier);
}

TEST(FabricFault, NamesAdapterPortAndBothAddresses) {
  const auto findings =
      asked(kKind, hung().fact("fabric-event", transfer("node7", "10.0.0.2<44206>"), 0).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  for (const char* part : {"mlx5_3", "node7", "10.0.0.2", "status 12", "vendor error 129"}) {
    EXPECT_NE(findings[0].summary.find(part), std::string::npos) << findings[0].summary;
  }
  EXPECT_NE(findings[0].fix.find("NCCL_IB_HCA=^mlx5_3"), std::string::npos) << findings[0].fix;
  EXPECT_TRUE(findings[0].culprits.empty()) << "no rank is to blame";
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 1}));
}

TEST(FabricFault, IsCertainWhenTheKernelSaysSo) {
  const auto findings = asked(kKind, hung()
                                         .fact("fabric-event", transfer("node7", "10.0.0.2<1>"), 0)
                                         .fact("fabric-event", port_down())
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_NE(findings[0].summary.find("port 1"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].summary.find("went down"), std::string::npos) << findings[0].summary;
}

TEST(FabricFault, SaysThatAPortCameBack) {
  Fields up = port_down();
  up["event"] = std::string("port-up");
  const auto findings =
      asked(kKind, hung().fact("fabric-event", port_down()).fact("fabric-event", up).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("is up again"), std::string::npos);
  EXPECT_TRUE(asked(kKind, hung().fact("fabric-event", up).build()).empty()) << "nothing failed";
}

TEST(FabricFault, FindsTheEndThatAllFailuresShare) {
  const auto findings = asked(kKind, hung()
                                         .fact("fabric-event", transfer("node1", "10.0.0.9<1>"), 0)
                                         .fact("fabric-event", transfer("node2", "10.0.0.9<2>"), 1)
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("one end at 10.0.0.9"), std::string::npos)
      << findings[0].summary;
}

TEST(FabricFault, OnlySuspectsItWhereAPeerIsGone) {
  EXPECT_TRUE(nothing_likely(asked(
      kKind,
      hung().killed(1, 9).fact("fabric-event", transfer("node7", "10.0.0.2<1>"), 0).build())));
  EXPECT_FALSE(
      nothing_likely(asked(kKind, hung().killed(1, 9).fact("fabric-event", port_down()).build())))
      << "a port that is down is no consequence";
}

TEST(FabricFault, OnlySuspectsFlushedRequestsAndMovingJobs) {
  EXPECT_TRUE(nothing_likely(
      asked(kKind, hung().fact("fabric-event", transfer("node7", "10.0.0.2<1>", 5), 0).build())));
  EXPECT_TRUE(nothing_likely(asked(
      kKind, hung().fact("fabric-event", port_down()).progress(model::Progress::kMoving).build())));
  Fields mild = port_down();
  mild["event"] = std::string("switch-error");
  mild["status"] = std::int64_t{12028};
  mild["fatal"] = false;
  EXPECT_TRUE(nothing_likely(asked(kKind, hung().fact("fabric-event", mild).build())));
  mild["fatal"] = true;
  EXPECT_FALSE(nothing_likely(asked(kKind, hung().fact("fabric-event", mild).build())));
}

TEST(FabricFault, OnlySuspectsAPortThatNcclDidNotMiss) {
  Fields up = port_down();
  up["event"] = std::string("port-up");
  EXPECT_TRUE(nothing_likely(
      asked(kKind, hung().fact("fabric-event", port_down()).fact("fabric-event", up).build())));
  auto parted = hung().fact("fabric-event", port_down());
  parted.all_reduce(0, 1).barrier(1, 1);
  EXPECT_TRUE(nothing_likely(asked(kKind, parted.build()))) << "the calls say why";
}

TEST(FabricFault, LeavesOutWhatIsOlderThanTheJob) {
  Fields old = port_down();
  old["time"] = 100.0;
  model::JobModel told = hung().fact("fabric-event", old).build();
  for (model::Observation& look : told.observations) {
    for (model::Process& process : look.processes) {
      process.start_time = 200.0;
    }
  }
  EXPECT_TRUE(asked(kKind, told).empty());
  told.facts.front().fields["time"] = 300.0;
  EXPECT_EQ(asked(kKind, told).size(), 1u);
}

TEST(FabricFault, IsSilentOnTheHealthyTwin) {
  EXPECT_TRUE(asked(kKind, hung().build()).empty());
}

TEST(FabricFault, DoesNotDependOnTheOrderOfFacts) {
  const auto told = hung()
                        .fact("fabric-event", port_down())
                        .fact("fabric-event", transfer("node7", "10.0.0.2<1>"), 0)
                        .build();
  EXPECT_EQ(essence(asked(kKind, told)), essence(asked(kKind, reversed(told))));
}

TEST(FabricFault, AnIommuThatRefusesDevicesIsLikelyOnlyIfGpusCopyDirectly) {
  const auto told = [](const std::string& log) {
    JobBuilder story;
    for (const char* device : {"03:00.0", "83:00.0"}) {
      story.fact("fabric-event", {{"event", std::string("iommu-fault")},
                                  {"source", std::string("kernel")},
                                  {"device", std::string(device)},
                                  {"text", std::string("DMAR: x")}});
    }
    return asked("fabric-fault", story.log({}, log).build());
  };
  const auto direct = told("a:7:9 [0] NCCL INFO Ring 00 : 0[0] -> 1[1] via P2P/direct pointer\n");
  ASSERT_EQ(direct.size(), 1U);
  EXPECT_EQ(direct[0].confidence, Confidence::kLikely);
  EXPECT_NE(direct[0].fix.find("NCCL_P2P_DISABLE=1"), std::string::npos);
  const auto other = told("training\n");
  ASSERT_EQ(other.size(), 1U);
  EXPECT_EQ(other[0].confidence, Confidence::kPossible);
}

Fields interface_of(const std::string& host) {
  return {{"host", host}, {"interface", std::string("eth0")}, {"address", "10.0.0." + host}};
}

TEST(FabricFault, NamesBothMachinesIfBothReportFailures) {
  Fields one = transfer("1", "10.0.0.2<1>");
  Fields other = transfer("2", "10.0.0.1<2>");
  std::swap(other["local"], other["remote"]);
  auto told = hung().fact("fabric-event", one, 0).fact("fabric-event", other, 1);
  told.log({}, "1:7:7 [0] NCCL INFO NET/IB : Using [0]mlx5_3:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n");
  const auto findings = asked(kKind, told.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("between 1 and 2 (mlx5_3, RoCE)"), std::string::npos)
      << findings[0].summary;
  EXPECT_NE(findings[0].fix.find("NCCL_IB_GID_INDEX"), std::string::npos);
  const auto more = asked(kKind, told.fact("nccl-interface", interface_of("3")).build());
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].summary.find("between"), std::string::npos)
      << "the other ends may be on the third machine";
}

TEST(FabricFault, AnAdapterThatRefusesItsOwnMemoryIsNotAConsequence) {
  const auto findings = asked(
      kKind,
      hung().killed(1, 9).fact("fabric-event", transfer("node7", "10.0.0.2<1>", 4), 0).build());
  EXPECT_FALSE(nothing_likely(findings));
  EXPECT_NE(findings.at(0).fix.find("NCCL_NET_GDR_LEVEL"), std::string::npos);
}

TEST(FabricFault, OnlySuspectsAStateThatTheDriverLost) {
  const auto findings =
      asked("fabric-fault", job()
                                .ranks(2)
                                .stack(kAll, kInBarrier)
                                .fact("fabric-event", {{"event", std::string("fabric-state")},
                                                       {"source", std::string("kernel")},
                                                       {"text", std::string("NVRM: x")}})
                                .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_NE(findings[0].fix.find("fabric manager"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::detectors
