// SPDX-License-Identifier: Apache-2.0
// Messages of NCCL and the kernel about links, ports and switches.
#include "collector/imports/logs/fabric_text.h"

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

const model::Fact& event(const model::JobModel& job, std::size_t index = 0) {
  const auto all = model::facts(job, "fabric-event");
  EXPECT_GT(all.size(), index);
  return *all.at(index);
}

TEST(FabricText, ACompletionErrorNamesBothEnds) {
  const auto job = read_log(
      "node7:984:984 [4] NCCL INFO comm 0x55d0 rank 12 nranks 16 cudaDev 4 busId c1000 commId 0x7 "
      "- Init COMPLETE\n"
      "node7:984:1357 [4] transport/net_ib.cc:1615 NCCL WARN NET/IB : Got completion from peer "
      "10.0.0.9<44206> with status=12 opcode=129 len=65536 vendor err 129 (Recv) localGid "
      "::ffff:10.1.88.182 remoteGids::ffff:10.1.4.221 hca mlx5_3\n");
  const model::Fact& fact = event(job);
  EXPECT_EQ(fact.rank, 12);
  EXPECT_EQ(fact.pid, 984);
  EXPECT_EQ(fact.text("event"), "completion-error");
  EXPECT_EQ(fact.text("host"), "node7");
  EXPECT_EQ(fact.number("gpu"), 4);
  EXPECT_EQ(fact.text("peer"), "10.0.0.9<44206>");
  EXPECT_EQ(fact.number("status"), 12);
  EXPECT_EQ(fact.number("vendor_error"), 129);
  EXPECT_EQ(fact.text("local"), "::ffff:10.1.88.182");
  EXPECT_EQ(fact.text("remote"), "::ffff:10.1.4.221");
  EXPECT_EQ(fact.text("device"), "mlx5_3");
}

TEST(FabricText, NewerNcclSpellsTheStatus) {
  const auto job = read_log(
      "a:7:9 [0] x.cc:1 NCCL WARN NET/IB: Got completion from peer 10.0.0.9<1> with "
      "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 (Send)\n");
  EXPECT_EQ(event(job).number("status"), 12);
  EXPECT_EQ(event(job).number("vendor_error"), 129);
}

TEST(FabricText, EqualEventsAreCounted) {
  std::string log;
  for (int i = 0; i < 5; ++i) {
    log +=
        "gpu-48:34050:34121 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_2:1 Got async "
        "event : port error\n\n";
  }
  log +=
      "gpu-48:34050:34121 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_2:1 Got async "
      "event : port active\n";
  const auto job = read_log(log);
  EXPECT_EQ(event(job).text("event"), "port-down");
  EXPECT_EQ(event(job).number("count"), 5);
  EXPECT_EQ(event(job).text("device"), "mlx5_2");
  EXPECT_EQ(event(job).number("port"), 1);
  EXPECT_EQ(event(job, 1).text("event"), "port-up");
}

TEST(FabricText, TheKernelNamesLinksAndSwitches) {
  const auto job = read_log(
      "Sep 11 04:12:09 node7 kernel: [81234.100] mlx5_core 0000:a1:00.0 ens1np0: Link down\n"
      "Sep 11 04:12:10 node7 kernel: nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 12028, Non-fatal, "
      "Link 31 egress non-posted PRIV error (First)\n"
      "Sep 11 04:12:11 node7 kernel: bond0: (slave ens1f0): link status definitely down, "
      "disabling\n"
      "Sep 11 04:12:12 node7 kernel: audit: type=1400 apparmor=\"ALLOWED\"\n");
  EXPECT_EQ(event(job).text("event"), "port-down");
  EXPECT_EQ(event(job).text("host"), "node7");
  EXPECT_EQ(event(job).text("device"), "mlx5_core 0000:a1:00.0 ens1np0");
  EXPECT_EQ(event(job, 1).text("event"), "switch-error");
  EXPECT_EQ(event(job, 1).number("status"), 12'028);
  EXPECT_EQ(event(job, 1).flag("fatal"), false);
  EXPECT_EQ(event(job, 2).text("event"), "port-down");
  EXPECT_EQ(model::facts(job, "fabric-event").size(), 3U);
}

TEST(FabricText, OneLineOfDmesgIsALog) {
  for (const std::string_view line :
       {"[Fri Sep 11 04:12:09 2026] NVRM: Xid (PCI:0000:66:00): 145, RLW_REMAP Nonfatal",
        "[81234.567890] NVRM: Xid (PCI:0000:66:00): 79, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:66:00): 79, GPU has fallen off the bus.",
        "[   12.5] mlx5_core 0000:a1:00.0 ens1np0: Link down"}) {
    EXPECT_TRUE(is_log(line, "dmesg.txt")) << line;
  }
  EXPECT_FALSE(is_log("[12:30] a talk about kernels", "notes.txt"));
  EXPECT_FALSE(is_log("bond0: the name is bond", "notes.txt"));
}

TEST(FabricText, TrainingLinesAreNoEvents) {
  const auto job = read_log(
      "[rank0]: env: Link down the tree\n"
      "a:7:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB\n"
      "[12.5] ens1 loss 0.3\n");
  EXPECT_TRUE(model::facts(job, "fabric-event").empty());
}

TEST(FabricText, ATagOfNcclHasAHostAndTwoNumbers) {
  const auto tag =
      nccl_tag("[2026-05-05 06:16:47] node-01:189884:189890 [3] plugin/net.cc:3 NCCL WARN x");
  ASSERT_TRUE(tag);
  EXPECT_EQ(tag->host, "node-01");
  EXPECT_EQ(tag->pid, 189'884);
  EXPECT_EQ(tag->gpu, 3);
  EXPECT_FALSE(nccl_tag("[3] NCCL WARN x"));
  EXPECT_FALSE(nccl_tag("a:b:9 [3] NCCL WARN x"));
}

TEST(FabricText, ReadsCompletionErrorsOfOldReleases) {
  const auto job = read_log(
      "a:7:9 [0] transport/net_ib.cc:789 NCCL WARN NET/IB : Got completion with error 12, opcode "
      "1, "
      "len 11155, vendor err 129\n");
  EXPECT_EQ(event(job).number("status"), 12);
}

TEST(FabricText, AnAsyncEventWithoutAnErrorIsNoEvent) {
  const auto events = [](const std::string& words) {
    return model::facts(
               read_log("a:7:9 [0] net_ib.cc:93 NCCL WARN NET/IB : mlx5_2:1 " + words + "\n"),
               "fabric-event")
        .size();
  };
  EXPECT_EQ(events("Got async event : client reregistration"), 0U);
  EXPECT_EQ(events("Got async event : GID table change"), 0U);
  EXPECT_EQ(events("Got non-fatal async event: LID change(11)"), 0U);
  EXPECT_EQ(events("Got async event : local catastrophic error"), 1U);
  EXPECT_EQ(events("async fatal event: device fatal error"), 1U);
  EXPECT_EQ(events("Got async error event: port error"), 1U);
}

TEST(FabricText, AnIommuRefusesADevice) {
  const auto device = [](const std::string& line) {
    const auto job = read_log("[19126.486981] " + line + "\n");
    EXPECT_EQ(event(job).text("event"), "iommu-fault");
    return event(job).text("device");
  };
  EXPECT_EQ(
      device("DMAR: [DMA Write] Request device [03:00.0] fault addr d1139000 [fault reason 05] "
             "PTE Write access is not set"),
      "03:00.0");
  EXPECT_EQ(
      device("DMAR: [DMA Write NO_PASID] Request device [83:00.0] fault addr 0xd1139000 [fault "
             "reason 0x05] PTE Write access is not set"),
      "83:00.0");
  EXPECT_EQ(device("nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0011 "
                   "address=0xd0139068 flags=0x0020]"),
            "nvidia 0000:41:00.0");
  EXPECT_TRUE(model::facts(read_log("[1.2] DMAR: IOMMU enabled\n[1.3] DMAR: DRHD: handling fault "
                                    "status reg 502\n"),
                           "fabric-event")
                  .empty());
}

TEST(FabricText, AnAdapterThatDoesNotAnswerHasFailed) {
  for (const char* line : {
           "mlx5_core 0000:81:00.0: wait_func:1137:(pid 31): ACCESS_REG(0x805) timeout. Will cause "
           "a leak of a command resource",
           "mlx5_core 0000:81:00.0: poll_health:795:(pid 0): Fatal error 1 detected",
           "mlx5_core 0000:81:00.0: AER: can't recover (no error_detected callback)",
       }) {
    EXPECT_EQ(event(read_log(std::string("[19126.486981] ") + line + "\n")).text("event"),
              "device-error")
        << line;
  }
}

TEST(FabricText, TheDriverLostTheStateOfItsFabric) {
  const auto job = read_log(
      "[Mon Sep  7 13:36:01 2026] NVRM: nvCheckOkFailedNoLog: Check failed: NVLink fabric state "
      "cached by the driver is out of sync [NV_ERR_FABRIC_STATE_OUT_OF_SYNC] (0x00000087)\n"
      "[Mon Sep  7 13:36:02 2026] NVRM: knvlinkSendInbandData_IMPL: Failed to send inband data: 0\n"
      "[Mon Sep  7 13:36:03 2026] NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n");
  ASSERT_EQ(model::facts(job, "fabric-event").size(), 1U);
  EXPECT_EQ(event(job).text("event"), "fabric-state");
  EXPECT_EQ(event(job).number("count"), 2);
}

}  // namespace
}  // namespace ddpdoctor::imports
