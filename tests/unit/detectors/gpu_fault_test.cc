// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "collector/detectors/evidence/gpu_events.h"
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "gpu-fault";

JobBuilder story(const std::string& about) {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .fact("kernel-log",
            {{"about", about}, {"text", std::string("NVRM: Xid (PCI:0000:3b:00): 79")}});
}

TEST(GpuFault, QuotesTheKernel) {
  const auto findings = asked(kKind, story("xid").build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].evidence.at(0).text.find("Xid"), std::string::npos);
}

TEST(GpuFault, FindsTheRankByTheGpuInNcclsLog) {
  const auto device = [](const char* host) {
    return std::map<std::string, model::FactValue>{{"host", std::string(host)},
                                                   {"address", std::string("0000:3b:00.0")}};
  };
  JobBuilder one = job();
  one.log({}, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n")
      .fact("nccl-device", device("a"), 3);
  ASSERT_EQ(asked(kKind, one.build()).size(), 1U);
  EXPECT_EQ(asked(kKind, one.build())[0].culprits, model::RankSet({3}));
  one.fact("nccl-device", device("b"), 7);  // the line names no host
  EXPECT_TRUE(asked(kKind, one.build())[0].culprits.empty());
}

TEST(GpuFault, IsSilentOnOtherLines) {
  EXPECT_TRUE(asked(kKind, story("segfault").build()).empty());
}

TEST(GpuFault, IsSilentOnFaultsOfOtherMemory) {
  const auto says = [](const std::string& line) {
    return asked(kKind, job().ranks(2).exited(1, 1).ended().log({}, line + "\n").build());
  };
  EXPECT_TRUE(
      says("EDAC MC0: 1 UE memory read error (page:0x0 - uncorrectable ECC error)").empty());
  EXPECT_TRUE(says("smartd: Device: /dev/sda, uncorrectable ECC error count 8").empty());
  EXPECT_FALSE(says("RuntimeError: CUDA error: uncorrectable ECC error encountered").empty());
}

TEST(GpuFault, OnlySuspectsItInAMovingJob) {
  EXPECT_TRUE(
      nothing_likely(asked(kKind, story("xid").progress(model::Progress::kMoving).build())));
}

TEST(GpuFault, FindsTheRankByTheProcessInTheLine) {
  const auto findings = asked(
      kKind, job()
                 .ranks(3)
                 .stack(kAll, kInBarrier)
                 .fact("kernel-log", {{"text", "NVRM: Xid (PCI:0000:3b:00): 79, pid=" +
                                                   std::to_string(pid_of(2)) + ", name=python"}})
                 .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
}

model::JobModel log_of(const std::string& text) {
  JobBuilder builder;
  return builder.log({}, text).build();
}

/// The only finding on a log that contains nothing else.
Finding told(const std::string& text) {
  const auto findings = asked(kKind, log_of(text));
  EXPECT_EQ(findings.size(), 1U) << text;
  return findings.empty() ? Finding{} : findings.front();
}

TEST(GpuFault, NamesTheGpuAndTheHost) {
  const Finding finding = told(
      "Oct  6 11:03:18 node5 kernel: [ 12.1] NVRM: Xid (PCI:0000:C1:00): 79, pid='<unknown>', "
      "name=<unknown>, GPU has fallen off the bus.\n"
      "Oct  6 11:03:18 node5 kernel: [ 12.2] NVRM: GPU 0000:c1:00.0: GPU has fallen off the "
      "bus.\n");
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_EQ(finding.summary, "GPU 0000:c1:00.0 of node5 reported Xid 79 (fallen off the bus)");
  EXPECT_EQ(finding.evidence.size(), 1U);
}

TEST(GpuFault, JoinsTheAddressOfTheLinesAbove) {
  const Finding finding = told(
      "[ 1843.3] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
      "               NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
      "               NVRM: fallen off the bus and is not responding to commands.\n");
  EXPECT_EQ(finding.details.at("gpu"), model::FactValue(std::string("0000:b3:00.0")));
}

TEST(GpuFault, ReadsWhatNcclsDiagnosticsFound) {
  const Finding finding =
      told("node1:3141 NCCL DIAG [INFO] Xid 79 detected 1 time on host node7. Restart it.\n");
  EXPECT_NE(finding.summary.find("node7"), finding.summary.npos) << finding.summary;
  EXPECT_NE(finding.summary.find("Xid 79"), finding.summary.npos) << finding.summary;
  EXPECT_TRUE(asked(kKind, log_of("node1:3141 NCCL DIAG [OK] Xid 63 detected 2 times on host "
                                  "node7. No user action is required.\n"))
                  .empty());
  EXPECT_TRUE(asked(kKind, log_of("node1:3141 NCCL DIAG [OK] Xid/SXid: no events\n")).empty());
}

TEST(GpuFault, ACleanupIsNoFault) {
  const Finding finding = told("[5.1] NVRM: Xid (PCI:0000:4f:00): 45, pid=77, name=python, Ch 8\n");
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_NE(finding.summary.find("process 77"), std::string::npos) << finding.summary;
}

TEST(GpuFault, TheXidBeforeACleanupIsTheCause) {
  for (const std::string text :
       {"[5.1] NVRM: Xid (PCI:0000:4f:00): 149, NETIR_LINK_EVT Fatal\n"
        "[5.2] NVRM: Xid (PCI:0000:4f:00): 45, pid=77, name=python, Ch 8\n",
        "[5.2] NVRM: Xid (PCI:0000:4f:00): 45, pid=77, name=python, Ch 8, caused by previous Xid "
        "149\n"}) {
    const Finding finding = told(text);
    EXPECT_EQ(finding.confidence, Confidence::kLikely);
    EXPECT_EQ(finding.details.at("xid"), model::FactValue(std::int64_t{149})) << text;
    EXPECT_NE(finding.summary.find("GPU 0000:4f:00.0 reported Xid 149"), std::string::npos);
  }
}

TEST(GpuFault, WhatAProgramCausesAccusesNoGpu) {
  for (const int number : {13, 31, 43, 68, 69}) {
    const Finding finding =
        told(fmt::format("[5.1] NVRM: Xid (PCI:0000:4f:00): {}, pid=77, name=python\n", number));
    EXPECT_EQ(finding.confidence, Confidence::kPossible) << number;
    EXPECT_NE(finding.summary.find("rarely a fault of the GPU"), std::string::npos) << number;
  }
  for (const int number : {48, 64, 74, 79, 94, 95, 119, 120, 140, 145, 149}) {
    EXPECT_EQ(told(fmt::format("[5.1] NVRM: Xid (PCI:0000:4f:00): {}, x\n", number)).confidence,
              Confidence::kLikely)
        << number;
  }
  EXPECT_EQ(told("[5.1] NVRM: Xid (PCI:0000:4f:00): 9999, x\n").confidence, Confidence::kPossible);
}

TEST(GpuFault, ReadsWhatNvidiaSmiSays) {
  const Finding finding =
      told("Unable to determine the device handle for GPU0000:03:00.0: Unknown Error\n");
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_NE(finding.summary.find("GPU 0000:03:00.0"), std::string::npos);
  EXPECT_EQ(told("Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot "
                 "the system to recover this GPU\n")
                .confidence,
            Confidence::kLikely);
}

TEST(GpuFault, AddressesAreWrittenOneWay) {
  for (const char* text : {"GPU0000:4F:00.0:", "Xid (PCI:0000:4f:00): 79", "00000000:4F:00.0",
                           "11:03:18 GPU 0000:4f:00.0", "GPU 000:4F:00.0: x"}) {
    EXPECT_EQ(gpu_address(text), "0000:4f:00.0") << text;
  }
  EXPECT_EQ(gpu_address("2025-10-06T11:03:18 ::ffff:10.1.1.1"), "");
}

Findings told_by_kernel(const std::string& text) {
  model::JobModel job;
  job.logs.push_back({.rank = {}, .text = text});
  return asked("gpu-fault", job);
}

TEST(GpuFault, AFatalErrorOfThePcieLinkIsOfTheGpuBelow) {
  const std::string driver =
      "[ 1.2] nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)\n";
  const auto fatal = told_by_kernel(
      "[ 1.1] pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: "
      "0000:00:03.0\n" +
      driver);
  ASSERT_EQ(fatal.size(), 1U);
  EXPECT_EQ(fatal[0].confidence, Confidence::kLikely);
  EXPECT_NE(fatal[0].summary.find("GPU 0000:03:00.0"), std::string::npos);
  EXPECT_TRUE(fatal[0].culprits.empty());
  const auto mild = told_by_kernel(
      "[ 1.1] pcieport 0000:00:03.0: AER: Uncorrected (Non-Fatal) error received: 0000:03:00.0\n" +
      driver);
  ASSERT_EQ(mild.size(), 1U);
  EXPECT_EQ(mild[0].confidence, Confidence::kPossible);
}

TEST(GpuFault, ACorrectedErrorOfTheBusIsNoFault) {
  EXPECT_TRUE(told_by_kernel(
                  "[ 1.1] pcieport 0000:00:03.0: AER: Corrected error received: 0000:03:00.0\n"
                  "[ 1.2] nvidia 0000:03:00.0: PCIe Bus Error: severity=Corrected, type=Physical "
                  "Layer, (Receiver ID)\n"
                  "[ 1.3] nvidia 0000:03:00.0: AER: Correctable error message received\n"
                  "[ 1.4] snd_hda_intel 0000:03:00.1: AER: can't recover (no error_detected "
                  "callback)\n")
                  .empty());
}

TEST(GpuFault, AContainedErrorOfTheDriverIsAFault) {
  const auto findings =
      asked("gpu-fault",
            job()
                .ranks(2)
                .log(1,
                     "CUDA_ERROR_CONTAINED: Invalid access of peer GPU memory over nvlink or a "
                     "hardware error\n")
                .ended()
                .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
}

}  // namespace
}  // namespace ddpdoctor::detectors
