// SPDX-License-Identifier: Apache-2.0
// Warnings of Horovod's stall inspector.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

const std::string kWarning =
    "[2021-02-02 21:19:07.345988: W /tmp/horovod/common/stall_inspector.cc:105] One or more "
    "tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are "
    "waiting for remainder of ranks for more than 60 seconds. \n";

TEST(Horovod, TellsWhoHasNotSubmittedATensor) {
  const auto job = read_log("[1,3]<stdout>:ready\n" + kWarning +
                            "Missing ranks:\n0: [allreduce.conv1, allreduce.conv2 ...]\n"
                            "2: [allreduce.conv1]\n");
  ASSERT_EQ(job.collectives.size(), 4U);
  EXPECT_EQ(job.collectives[0].state, model::CallState::kCompleted);
  EXPECT_EQ(job.collectives[1].operation, "all_reduce");
  EXPECT_EQ(job.collectives[1].sequence, job.collectives[0].sequence + 1);
  EXPECT_EQ(job.collectives[2].sequence, job.collectives[0].sequence);
  EXPECT_EQ(job.collectives[3].state, model::CallState::kStarted);
}

TEST(Horovod, OlderOnesTellItBehindEachTensor) {
  const auto job =
      read_log(kWarning + "Stalled ops:\nHorovodBroadcast_dense_0 [missing ranks: 0]\n");
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[1].operation, "broadcast");
  EXPECT_EQ(job.collectives[1].state, model::CallState::kStarted);
}

TEST(Horovod, OneTensorMayStandOnTheLineThatBeginsTheList) {
  const auto job =
      read_log(kWarning + "[1,0]<stderr>:Stalled ops:adam.allreduce [missing ranks: 0]\n");
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].state, model::CallState::kCompleted);
}

TEST(Horovod, AFileWithNothingButAWarningIsALog) {
  EXPECT_TRUE(is_log(kWarning + "Missing ranks:\n1: [allreduce.a]\n", "console.txt"));
  EXPECT_FALSE(is_log("Missing ranks:\n1: [allreduce.a]\n", "notes.txt"));
}

TEST(Horovod, AWarningIsPastWhenTheJobGoesOn) {
  const std::string stall = kWarning + "Missing ranks:\n0: [allreduce.conv1]\n";
  const std::string steps = "step 8\nstep 9\nstep 10\nstep 11\n";
  EXPECT_TRUE(read_log(stall + steps).collectives.empty());
  EXPECT_FALSE(read_log(stall + steps + stall).collectives.empty());
}

TEST(Horovod, OldReleasesListTheReadyRanks) {
  const auto job = read_log(
      "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by "
      "subset "
      "of ranks and are waiting for remainder of ranks for more than 60 seconds. Stalled ops: "
      "HorovodAllreduce_a_0 [ready ranks: 3, 0, 2], HorovodAllreduce_b_0 [ready ranks: 0, 2, 3]\n");
  std::map<model::Rank, std::int64_t> at;
  for (const model::CollectiveCall& call : job.collectives) {
    at[call.rank] = call.sequence;
  }
  EXPECT_EQ(at, (std::map<model::Rank, std::int64_t>{{0, 2}, {1, 1}, {2, 2}, {3, 2}}));
}

TEST(Horovod, ReadyRanksWithoutAGapNameNoMissingRank) {
  EXPECT_TRUE(read_log("WARNING: One or more tensors were submitted to be reduced, gathered or "
                       "broadcasted by subset of ranks and are waiting. Stalled ops: "
                       "HorovodAllreduce_a_0 [ready ranks: 0, 1]\n")
                  .collectives.empty());
}

/// The tensors that each rank submitted, by the facts "stalled-tensors".
std::map<model::Rank, std::vector<std::string>> submitted(const model::JobModel& job) {
  std::map<model::Rank, std::vector<std::string>> out;
  for (const model::Fact* fact : model::facts(job, "stalled-tensors")) {
    out[fact->rank.value_or(-1)] = fact->list("submitted");
  }
  return out;
}

TEST(Horovod, SidesThatSubmitDifferentTensorsAreNotMissing) {
  const std::map<model::Rank, std::vector<std::string>> wanted = {{0, {"allreduce.a"}},
                                                                  {1, {"allreduce.b"}}};
  for (const std::string list :
       {"Stalled ops: allreduce.a [ready ranks: 0], allreduce.b [ready ranks: 1]\n",
        "\nStalled ops:\nallreduce.a [missing ranks: 1]\nallreduce.b [missing ranks: 0]\n",
        "\nMissing ranks:\n0!: [allreduce.b]\n1: [allreduce.a]\n"}) {
    const auto job = read_log(kWarning.substr(0, kWarning.size() - 1) + list);
    EXPECT_TRUE(job.collectives.empty()) << list;
    EXPECT_EQ(submitted(job), wanted) << list;
  }
}

TEST(Horovod, ARankThatOnlyLacksTensorsIsBehind) {
  const auto job =
      read_log(kWarning + "Missing ranks:\n0: [allreduce.a, allreduce.b]\n1: [allreduce.b]\n");
  EXPECT_TRUE(submitted(job).empty());
  EXPECT_EQ(job.collectives.size(), 2U);
}

TEST(Horovod, ATensorBeyondTheSixthOfARankIsUnknown) {
  const auto job =
      read_log(kWarning + "Missing ranks:\n0: [a1, a2, a3, a4, a5, a6 ...]\n1: [allreduce.z]\n");
  EXPECT_TRUE(submitted(job).empty()) << "rank 0 may lack allreduce.z, too";
}

TEST(Horovod, TheOnlyOtherRankSubmittedWhatOneLacks) {
  const std::string lists =
      "[0]<stderr>:Missing ranks:\n[0]<stderr>:0: [z]\n"
      "[0]<stderr>:1: [a1, a2, a3, a4, a5, a6 ...]\n";
  const std::string warning = "[0]<stderr>:" + kWarning + lists;
  EXPECT_EQ(submitted(read_log(warning + "[1]<stdout>:step\n")).size(), 2U);
  EXPECT_TRUE(submitted(read_log(warning)).empty()) << "rank 2 may exist and have submitted z";
}

}  // namespace
}  // namespace ddpdoctor::imports
