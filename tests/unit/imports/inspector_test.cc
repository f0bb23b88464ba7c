// SPDX-License-Identifier: Apache-2.0
// Files of NCCL's Inspector.
#include "collector/imports/inspector.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ddpdoctor::imports {
namespace {

std::string line(int rank, std::string_view id, int size, std::string_view operation, int number) {
  return fmt::format(
      R"({{"header":{{"id":"{}","comm_name":"unknown","rank":{},"n_ranks":{},"nnodes":1}},)"
      R"("metadata":{{"inspector_output_format_version":"v4.0","git_rev":"","hostname":"node0",)"
      R"("pid":41}},"coll_perf":{{"coll":"{}","coll_sn":{},"coll_msg_size_bytes":4096,)"
      R"("event_trace_ts":{{"coll_start_ts":1752867229235059}}}}}})"
      "\n",
      id, rank, size, operation, number);
}

TEST(Inspector, NumbersTheCallsOfTheLargestCommunicator) {
  const std::string text = line(2, "0xa", 8, "AllReduce", 5) + line(0, "0xb", 2, "AllReduce", 9) +
                           line(2, "0xa", 8, "AllGather", 0) + line(2, "0xa", 8, "AllReduce", 6) +
                           R"({"header":{"id":"0xa")";  // cut off: the process was killed
  ASSERT_TRUE(is_inspector(text, "x"));
  const auto job = read_inspector(text, "x");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->world_size, 8);
  ASSERT_EQ(job->collectives.size(), 3U);
  EXPECT_EQ(job->collectives[0].rank, 2);
  EXPECT_EQ(job->collectives[0].sequence, 6);
  EXPECT_EQ(job->collectives[1].operation, "all_gather");
  EXPECT_EQ(job->collectives[1].sequence, 7);
  EXPECT_EQ(job->collectives[2].sequence, 8);
  EXPECT_EQ(job->collectives[2].state, model::CallState::kCompleted);
  EXPECT_NEAR(job->collectives[2].time.value_or(0), 1752867229.235, 0.001);
  EXPECT_EQ(job->coverage.warnings.size(), 1U);  // one of two communicators is read
}

TEST(Inspector, WithoutACommunicatorNothingIsSaid) {
  EXPECT_FALSE(read_inspector(R"({"metadata":{"inspector_output_format_version":"v4.0"}})", "x"));
  EXPECT_FALSE(is_inspector("{\"log\": \"x\"}", "x"));
}

}  // namespace
}  // namespace ddpdoctor::imports
