// SPDX-License-Identifier: Apache-2.0
// The blocks of NCCL RAS's text answer: each lists ranks for its own reason.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

/// An answer with two groups of communicators, of 4 and of 2 ranks.
model::JobModel answered(const std::string& blocks) {
  return read_log(
      "NCCL version 2.29.2 compiled with CUDA 13.0\nJob summary\n===========\n\n"
      "  Nodes  Processes         GPUs  Processes     GPUs\n"
      "      2          2            1          4        4\n\nCommunicators... (0.00s)\n"
      "=============\n\n    0         1         2         2         4         4   RUNNING  "
      "MISMATCH\n    1         2         2         1         2         4   RUNNING      OK\n\n" +
      blocks);
}

const std::string kMismatch = "#0-0 (cf26) MISMATCH\n";
const std::string kReduces = "  Communicator ranks have different AllReduce operation counts\n";

std::map<model::Rank, std::int64_t> counts(const model::JobModel& job) {
  std::map<model::Rank, std::int64_t> out;
  for (const model::CollectiveCall& call : job.collectives) {
    out[call.rank] = call.sequence;
  }
  return out;
}

using Counts = std::map<model::Rank, std::int64_t>;

bool somebody_is_silent(const model::JobModel& job) {
  const auto facts = model::facts(job, "nccl-ras");
  return std::any_of(facts.begin(), facts.end(), [](const model::Fact* fact) {
    return fact->flag("considered_dead").has_value();
  });
}

TEST(RasText, RanksWithAStatusOrAnErrorHaveAnswered) {
  const auto job = answered(
      "#0-0 (cf26) ERROR\n  Asynchronous errors on 2 ranks\n  2 ranks reported remote process "
      "exited or there was a network error\n  Rank 0 -- GPU 0 managed by process 70 on node n0\n"
      "  Rank 3 -- GPU 1 managed by process 73 on node n1\n\n" +
      kMismatch +
      "  Communicator ranks have different status\n  2 ranks have status RUNNING\n  Rank 2 has "
      "status ABORT -- GPU 0 managed by process 72 on node n1\n  Rank 1 -- GPU 1 managed by "
      "process 71 on node n0\n");
  EXPECT_FALSE(somebody_is_silent(job));
  EXPECT_TRUE(job.coverage.unobserved_ranks.empty());
}

TEST(RasText, ARankWithACounterHasAnswered) {
  const auto job = answered(kMismatch + kReduces +
                            "  Rank 1 has launched up to operation 31\n  Rank 0 has launched up to "
                            "operation 30\n  Rank 0 -- GPU 0 managed by process 70 on node n0\n"
                            "  Rank 1 -- GPU 1 managed by process 71 on node n0\n");
  EXPECT_FALSE(somebody_is_silent(job));
  EXPECT_EQ(counts(job), (Counts{{0, 30}, {1, 31}}));
}

TEST(RasText, CountsWithoutAListBelongToNoRankIfThereAreTwo) {
  const auto job = answered(kMismatch + kReduces +
                            "  2 ranks have launched up to operation 31\n  2 ranks have launched "
                            "up to operation 30\n");
  EXPECT_TRUE(job.collectives.empty());
}

TEST(RasText, CountsOfTwoOperationsAreAdded) {
  const auto job = answered(
      kMismatch + kReduces +
      "  3 ranks have launched up to operation 31\n  Rank 2 has launched up to operation 30 -- GPU "
      "0 managed by process 72 on node n1\n\n  Communicator ranks have different Broadcast "
      "operation counts\n  3 ranks have launched up to operation 5\n  Rank 1 has launched up to "
      "operation 7 -- GPU 1 managed by process 71 on node n0\n");
  EXPECT_EQ(counts(job), (Counts{{0, 36}, {1, 38}, {2, 35}, {3, 36}}));
  EXPECT_EQ(job.collectives.front().operation, "");
}

TEST(RasText, ARankThatLaunchedNothingIsBehind) {
  const auto job = answered(kMismatch + kReduces +
                            "  3 ranks have launched up to operation 1\n  Rank 3 has not launched "
                            "any operations -- GPU 1 managed by process 73 on node n1\n");
  EXPECT_EQ(counts(job), (Counts{{0, 1}, {1, 1}, {2, 1}, {3, 0}}));
}

TEST(RasText, RanksOfASmallerCommunicatorAreNotRanksOfTheJob) {
  const auto job = answered("#1-0 (aa11) MISMATCH\n" + kReduces +
                            "  Rank 0 has launched up to operation 8 -- GPU 0 managed by process "
                            "70 on node n0\n  Rank 1 has launched up to operation 9 -- GPU 0 "
                            "managed by process 72 on node n1\n");
  EXPECT_TRUE(job.collectives.empty());
  ASSERT_EQ(job.coverage.warnings.size(), 1U);
  EXPECT_EQ(job.coverage.warnings[0],
            "communicator aa11 has 2 of 4 ranks, and RAS does not say which; numbered within it, "
            "rank 0 launched 8, rank 1 launched 9 (all_reduce operations)");
}

TEST(RasText, OfTwoAnswersTheNewestCounts) {
  const auto block = [](int ahead, int behind) {
    return "Communicators... (0.00s)\n    0         1         1         2         2         2  "
           "RUNNING  MISMATCH\n" +
           kMismatch + kReduces +
           fmt::format(
               "  Rank 0 has launched up to operation {} -- GPU 0 managed by process 70 on "
               "node n0\n  Rank 1 has launched up to operation {} -- GPU 1 managed by "
               "process 71 on node n0\n",
               ahead, behind);
  };
  const auto job = read_log("NCCL version 2.29.2\nJob summary\n" + block(8, 7) + block(12, 11));
  EXPECT_EQ(counts(job), (Counts{{0, 12}, {1, 11}}));
}

}  // namespace
}  // namespace ddpdoctor::imports
