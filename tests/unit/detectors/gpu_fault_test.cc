// SPDX-License-Identifier: Apache-2.0
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

TEST(GpuFault, IsSilentOnOtherLines) {
  EXPECT_TRUE(asked(kKind, story("segfault").build()).empty());
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

}  // namespace
}  // namespace ddpdoctor::detectors
