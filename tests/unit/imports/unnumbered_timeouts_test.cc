// SPDX-License-Identifier: Apache-2.0
// Timeouts of torch before 1.13, which number no call, and the progress bars beside them.
#include <string>

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::string timeout_of(int rank) {
  return "[E ProcessGroupNCCL.cpp:587] [Rank " + std::to_string(rank) +
         "] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, "
         "Timeout(ms)=1800000) ran for 1807403 milliseconds before timing out.\n";
}

const std::string kTable =
    "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n"
    "  exitcode  : -6 (pid: 55032)\n====================\n";

TEST(UnnumberedTimeout, NamesTheRankThatWaited) {
  const auto job = read_log(timeout_of(1) + timeout_of(1));
  const auto facts = model::facts(job, "watchdog-timeout");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0]->rank, 1);
  EXPECT_EQ(facts[0]->text("operation"), "all_reduce");
  EXPECT_EQ(facts[0]->number("seconds"), 1807.403);
  EXPECT_TRUE(job.ended);
  EXPECT_TRUE(job.collectives.empty());
}

TEST(UnnumberedTimeout, TheAbortOfItsWatchdogIsNoDeathOfTheRank) {
  EXPECT_TRUE(read_log(timeout_of(1) + kTable).observations.empty());
  EXPECT_TRUE(read_log("  what():  " + timeout_of(1).substr(30) +
                       "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated "
                       "with signal SIGABRT\n")
                  .observations.empty());
  EXPECT_FALSE(read_log(timeout_of(0) + kTable).observations.empty());
  EXPECT_FALSE(read_log(kTable).observations.empty());
}

std::string bar(const std::string& done, const std::string& elapsed) {
  return "train: Caching images (29." + done.substr(0, 1) + "GB ram):  80%|████████  | " + done +
         "/41999 [" + elapsed + "<18:09,  7.44it/s]\n";
}

TEST(ProgressBar, MovedWhileARankWaited) {
  const auto job = read_log(bar("33886", "29:39") + bar("33901", "29:50") + timeout_of(1) +
                            bar("33901", "30:08"));
  const auto facts = model::facts(job, "progress-bar");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0]->text("text"), "train: Caching images (29.3GB ram)");
  EXPECT_EQ(facts[0]->text("done"), "33901");
  EXPECT_EQ(facts[0]->text("total"), "41999");
}

TEST(ProgressBar, OneThatStoodStillOrEndedShowsNoWork) {
  const auto facts_in = [](const std::string& log) {
    return model::facts(read_log(log), "progress-bar").size();
  };
  const std::string moved = bar("33886", "1:39") + bar("33901", "1:50");
  EXPECT_EQ(facts_in(moved + timeout_of(1) + bar("33901", "32:08")), 0U);
  EXPECT_EQ(facts_in(moved + timeout_of(1)), 0U);
  EXPECT_EQ(facts_in(moved + timeout_of(1) + bar("41999", "1:55")), 0U);
  EXPECT_EQ(facts_in(moved + bar("33901", "1:55")), 0U);
}

}  // namespace
}  // namespace ddpdoctor::imports
