// SPDX-License-Identifier: Apache-2.0
// What torchfrtrace printed of dumps that are not given.
#include "collector/imports/flight_recorder/analysis_text.h"

#include <gtest/gtest.h>

#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

const std::string kFrames =
    "collective stack trace: \n all_reduce at /opt/torch/distributed/distributed_c10d.py:2896\n"
    "wrapper at /opt/torch/distributed/c10d_logger.py:81\nmean_loss at /srv/app/loop.py:96\n"
    "fit at /srv/app/loop.py:161\n";

TEST(AnalysisText, NamesTheRanksThatJoinedAndThoseThatDidNot) {
  const auto job = read_log(
      "Not all ranks joining collective, sequence number: 71\ninternal record id: 9\ngroup info: "
      "5:tp\ncollective: nccl:all_reduce\nmissing ranks: {6}\ninput sizes: [[8, 4]]\noutput sizes: "
      "[[8, 4]]\nworld size: 2\nexpected ranks: {4, 6}\ncollective state: started\n" +
      kFrames);
  ASSERT_EQ(job.collectives.size(), 2U);
  const model::CollectiveCall& joined = job.collectives[0];
  EXPECT_EQ(joined.rank, 4);
  EXPECT_EQ(joined.sequence, 71);
  EXPECT_EQ(joined.operation, "all_reduce");
  EXPECT_EQ(joined.state, model::CallState::kStarted);
  EXPECT_EQ(joined.call_site.file, "/srv/app/loop.py");
  EXPECT_EQ(joined.call_site.line, 96);
  EXPECT_EQ(joined.callers.size(), 2U);
  EXPECT_EQ(job.collectives[1].rank, 6);
  EXPECT_EQ(job.collectives[1].sequence, 70);
  EXPECT_EQ(job.groups.at(0).name, "tp");
}

TEST(AnalysisText, OfTheFirstVersionsCountsTheRanksOfTheDefaultGroup) {
  const auto job = read_log(
      "Not all ranks joining collective 5 at entry 4\ngroup info: 0:default_pg\ncollective: "
      "nccl:all_reduce\nmissing ranks: {1}\ninput sizes: [[3, 4]]\noutput sizes: [[3, "
      "4]]\nexpected "
      "ranks: 2\ncollective state: scheduled\n" +
      kFrames);
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].rank, 0);
  EXPECT_EQ(job.collectives[0].sequence, 5);
}

TEST(AnalysisText, WithoutTheMissingRanksSaysNothing) {
  const auto job = read_log(
      "torchfrtrace /dumps\nNot all ranks joining collective, sequence number: 71\ngroup info: 5\n"
      "collective: nccl:all_reduce\nworld size: 2\n");
  EXPECT_TRUE(job.collectives.empty());
}

std::string with_errors(int number, const std::string& errors) {
  return "Collective sequence number: " + std::to_string(number) +
         " has errors\ninternal record id: 3\ngroup info: 0:default_pg\n"
         "collective: nccl:all_reduce\ninput sizes: [[16, 2]]\noutput sizes: [[16, 2]]\n"
         "world size: 2\nexpected ranks: {0, 1}\ncollective state: scheduled\nerror msg: " +
         errors + "\ncollective stack trace: \n step at /srv/train.py:9\n";
}

TEST(AnalysisText, ADifferenceIsOfTheRankThatHasIt) {
  const auto job = read_dump(with_errors(
      7,
      "Culprit rank 1; Error type: SIZE_OR_SYNTAX_MISMATCH, Expected input sizes: '[[16, 2]]' "
      "does not match found input sizes: '[[40]]'"));
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].sequence, 7);
  EXPECT_EQ(job.collectives[0].shape, (std::vector<std::int64_t>{16, 2}));
  EXPECT_EQ(job.collectives[1].rank, 1);
  EXPECT_EQ(job.collectives[1].shape, (std::vector<std::int64_t>{40}));
  EXPECT_EQ(job.collectives[1].call_site.line, 9);
}

TEST(AnalysisText, OlderReleasesNameTheEntryOfACallWithErrors) {
  std::string text = with_errors(
      39,
      "Culprit rank 1; Error type: X, Expected input sizes: '[[16, 2]]' does not match found "
      "input sizes: '[[40]]'");
  text.replace(0, text.find('\n'), "Collective 39 at entry 38 errors");
  const auto job = read_dump("Not all ranks joining collective 39 at entry 38\n" + text);
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[1].sequence, 39);
  EXPECT_EQ(job.collectives[1].shape, (std::vector<std::int64_t>{40}));
}

TEST(AnalysisText, EachRankOfAMessageHasItsOwnDifference) {
  const auto job = read_dump(with_errors(
      7,
      "Culprit rank 0; Error type: COLLECTIVE_STATE_MISMATCH, Expected state: 'scheduled' does "
      "not match found state: 'completed', Culprit rank 1; Error type: "
      "COLLECTIVE_TYPE_MISMATCH, Expected collective type: 'all_reduce' does not match found "
      "collective type: 'broadcast'"));
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].state, model::CallState::kCompleted);
  EXPECT_EQ(job.collectives[1].operation, "broadcast");
}

TEST(AnalysisText, CutOffErrorsSayNothing) {
  EXPECT_TRUE(
      read_dump(with_errors(7, "Culprit rank 1; Error type: UNDECIDED")).collectives.empty());
  EXPECT_TRUE(read_dump(with_errors(7, "Culprit rank ")).collectives.empty());
}

}  // namespace
}  // namespace ddpdoctor::imports
