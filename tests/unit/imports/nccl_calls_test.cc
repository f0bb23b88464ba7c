// SPDX-License-Identifier: Apache-2.0
// Collectives that NCCL writes with NCCL_DEBUG_SUBSYS=COLL.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::string member(int rank, int size = 2) {
  return fmt::format(
      "a:{0}:{0} [{1}] NCCL INFO ncclCommInitRankConfig comm 0xc{1} rank {1} nranks {2} cudaDev "
      "{1} "
      "nvmlDev {1} busId 60 commId 0x7e - Init COMPLETE\n",
      100 + rank, rank, size);
}

std::string call(int rank, std::string_view name, int number, int count = 53, int dtype = 4) {
  return fmt::format(
      "a:{0}:{0} [{1}] NCCL INFO {2}: opCount {3:x} sendbuff 0x7f recvbuff 0x7f acc (nil) count "
      "{4} "
      "datatype {5} op 2 root 0 comm 0xc{1} [nranks=2] stream 0x55 task 0 globalrank {1}\n",
      100 + rank, rank, name, number, count, dtype);
}

TEST(NcclCalls, AreReadWithTheirSizesAndTypes) {
  const auto job = read_log(member(0) + member(1) + call(0, "Broadcast", 0) +
                            call(1, "ReduceScatter", 0, 1024, 9) + call(0, "AllReduce", 1));
  ASSERT_EQ(job.collectives.size(), 3U);
  EXPECT_EQ(job.collectives[0].operation, "broadcast");
  EXPECT_EQ(job.collectives[0].count, 53);
  EXPECT_EQ(job.collectives[0].dtype, "int64");
  EXPECT_EQ(job.collectives[0].root, 0);
  EXPECT_EQ(job.collectives[0].reduce_op, "");
  EXPECT_EQ(job.collectives[1].sequence, 2);
  EXPECT_EQ(job.collectives[1].reduce_op, "max");
  EXPECT_EQ(job.collectives[2].rank, 1);
  // Logs end at different moments, so no rank is reported as waiting for rank 1.
  EXPECT_EQ(job.collectives[1].state, model::CallState::kCompleted);
  EXPECT_EQ(job.collectives[2].dtype, "bfloat16");
  ASSERT_EQ(job.groups.size(), 1U);
  EXPECT_EQ(job.groups[0].ranks, (std::vector<model::Rank>{0, 1}));
}

TEST(NcclCalls, OfOlderReleasesNeedOneCommunicatorForEachProcess) {
  const std::string old = "a:7:9 [0] NCCL INFO comm 0xc0 rank 1 nranks 8\n";
  const std::string broadcast =
      "a:7:7 [0] NCCL INFO Broadcast: opCount 0 sendbuff 0x7f recvbuff 0x7f count 53 datatype 4 op "
      "0 "
      "root 0 comm 0xc0 [nranks=8] stream 0x55\n";
  const auto job = read_log(old + broadcast);
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.collectives[0].rank, 1);
  EXPECT_TRUE(read_log(old + "a:7:9 [0] NCCL INFO comm 0xd0 rank 1 nranks 8\n" + broadcast)
                  .collectives.empty());
}

TEST(NcclCalls, AreLeftOutFromTheFirstLostLineOn) {
  EXPECT_EQ(
      read_log(member(0) + call(0, "AllReduce", 0) + call(0, "AllReduce", 2)).collectives.size(),
      1U);
  // Calls of one group have one number; messages are not compared.
  EXPECT_EQ(
      read_log(member(0) + call(0, "Send", 0) + call(0, "AllReduce", 0) + call(0, "AllReduce", 1))
          .collectives.size(),
      2U);
}

// NCCL numbers the launches itself: an excerpt of a log can be compared with that of other ranks.
TEST(NcclCalls, OfAnExcerptKeepTheNumbersOfNccl) {
  const auto job = read_log(member(0) + call(0, "AllReduce", 0x27e) + call(0, "AllGather", 0x27f) +
                            call(0, "AllReduce", 0x281));
  ASSERT_EQ(job.collectives.size(), 2U);  // a line is lost then
  EXPECT_EQ(job.collectives[0].sequence, 0x27f);
  EXPECT_EQ(job.collectives[1].operation, "all_gather");
  const auto grouped = read_log(member(0) + call(0, "AllReduce", 3) + call(0, "AllReduce", 3));
  EXPECT_EQ(grouped.collectives.size(), 1U);  // how many calls came before is unknown
}

TEST(NcclCalls, OfPartsOfTheJobHaveNoKnownRanks) {
  const auto job =
      read_log(member(0, 4) + "a:100:100 [0] NCCL INFO comm 0xe0 rank 0 nranks 2\n" +
               "a:100:100 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7f recvbuff 0x7f "
               "count 5 datatype 7 op 0 root 0 comm 0xe0 [nranks=2] stream 0x55\n");
  EXPECT_TRUE(job.collectives.empty());
}

}  // namespace
}  // namespace ddpdoctor::imports
