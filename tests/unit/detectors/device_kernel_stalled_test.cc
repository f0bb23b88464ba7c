// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "device-kernel-stalled";

std::string in_deep_ep(const std::string& function) {
  return "native:deep_ep::Buffer::" + function +
         "@deep_ep_cpp.cpython-312-x86_64-linux-gnu.so | py:Buffer." + function +
         "@/v/site-packages/deep_ep/buffer.py:581 | py:forward@/srv/moe.py:40 | "
         "py:main@/srv/train.py:9";
}

const std::string kElsewhere = in("all_reduce", "py:step@/srv/train.py:20");

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl").stack(kAll, in_deep_ep("internode_dispatch"));
  return builder;
}

TEST(DeviceKernelStalled, NamesLibraryAndWrapperWhenAllAreInIt) {
  const Findings findings = asked(kKind, told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].summary.find("internode_dispatch of DeepEP"), std::string::npos)
      << findings[0].summary;
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/moe.py");
  EXPECT_NE(findings[0].fix.find("DeepEP's own tests"), std::string::npos);
}

TEST(DeviceKernelStalled, NamesTheRankThatNeverCameThere) {
  JobBuilder builder = told();
  builder.stack(3, kElsewhere);
  const Findings findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{3});
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 1, 2}));
  EXPECT_NE(findings[0].fix.find("rank 3"), std::string::npos);
}

TEST(DeviceKernelStalled, BlamesNobodyWhenHalfAreElsewhere) {
  JobBuilder builder = told();
  builder.stack({2, 3}, kElsewhere);
  const Findings findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
}

TEST(DeviceKernelStalled, ReadsBothRanksOfATimeout) {
  JobBuilder builder = job();
  builder.ranks(16).backend("nccl").ended();
  builder.log({},
              "DeepEP dispatch NVL receiver timeout, channel: 9, RDMA: 1, nvl: 3, src RDMA: 0, "
              "src nvl: 5, start: 0, end: 0\n"
              "DeepEP dispatch forwarder timeout (RDMA meta), channel: 4, RDMA: 1, nvl: 5, src "
              "RDMA lane: 0, dst NVL: 2, meta: 0, 0, 0, 0\n");
  const Findings findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{5}) << "rank 11 and rank 13 waited for it";
  EXPECT_TRUE(findings[0].waiting.contains(11));
  EXPECT_TRUE(findings[0].waiting.contains(13));
}

TEST(DeviceKernelStalled, ReadsATimeoutOfSymmetricMemory) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").ended();
  builder.log(1,
              "[FATAL] CUDASymmetricMemory::barrier: rank 1 failed to receive signal from rank "
              "0 on channel 0 after 1000 microseconds\n");
  const Findings findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{0});
  EXPECT_EQ(std::get<std::string>(findings[0].details.at("library")), "torch's symmetric memory");
}

TEST(DeviceKernelStalled, ReadsTheOldestKernelThatHasNotEnded) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").stack(kAll,
                                         "native:cudaStreamSynchronize@libcudart.so | "
                                         "py:step@/srv/train.py:20");
  const auto kernel = [&builder](model::Rank rank, std::int64_t place, const std::string& name) {
    builder.fact(
        "gpu-kernel",
        {{"stream", std::int64_t{7}}, {"place", place}, {"kernel", name}, {"finished", false}},
        rank);
  };
  for (const model::Rank rank : {0, 1}) {
    kernel(rank, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    kernel(rank, 1, "vllm::cross_device_reduce_1stage");
  }
  const Findings findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("custom all-reduce"), std::string::npos)
      << findings[0].summary;
  JobBuilder other = job();
  other.ranks(2).fact("gpu-kernel",
                      {{"stream", std::int64_t{7}},
                       {"place", std::int64_t{0}},
                       {"kernel", std::string("ampere_sgemm_128x64_tn")},
                       {"finished", false}},
                      0);
  EXPECT_TRUE(asked(kKind, other.build()).empty()) << "a kernel that computes";
}

TEST(DeviceKernelStalled, IsNoneWhereTheWrapperCalledTorch) {
  JobBuilder builder = job();
  builder.ranks(2).stack(
      kAll, in("all_gather_object",
               "py:CustomAllreduce.__init__@/v/site-packages/vllm/distributed/"
               "device_communicators/custom_all_reduce.py:120 | py:main@/srv/train.py:9"));
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

TEST(DeviceKernelStalled, OnlySuspectsItWhereARankHasATroubleOfItsOwn) {
  JobBuilder builder = told();
  builder.stack(3, "native:read@libc.so.6 | py:load@/srv/train.py:12 | py:main@/srv/train.py:4")
      .state(3, 'D', "nfs_wait_bit_killable");
  EXPECT_TRUE(nothing_likely(asked(kKind, builder.build())));
}

TEST(DeviceKernelStalled, OnlySuspectsItWhereARankIsGone) {
  JobBuilder builder = told();
  builder.killed(3, 9);
  EXPECT_TRUE(nothing_likely(asked(kKind, builder.build())));
}

TEST(DeviceKernelStalled, IsSilentOnTheHealthyTwin) {
  EXPECT_TRUE(nothing_likely(asked(kKind, moving(told().build()))));
  JobBuilder builder = job();
  builder.ranks(2).stack(kAll, kElsewhere);
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

TEST(DeviceKernelStalled, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked(kKind, told().build())), essence(asked(kKind, reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
