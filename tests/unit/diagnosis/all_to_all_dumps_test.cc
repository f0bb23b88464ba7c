// SPDX-License-Identifier: Apache-2.0
// Splits of all_to_all in dumps of torch's flight recorder: 2.11 writes them, earlier versions only
// sizes.
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/diagnosis/diagnosis.h"
#include "collector/imports/flight_recorder/flight_recorder.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::imports {
namespace {

base::Result<double> load(const std::string& path, std::string& bytes) {
  std::ifstream file(path, std::ios::binary);
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return 1'790'000'900.0;
}

std::string dump(int input, int output, std::string_view more, std::string_view state = "started") {
  return fmt::format(
      R"({{"version":"2.11","pg_config":{{"0":{{"name":"0","desc":"default_pg","ranks":"[0, 1]"}}}},)"
      R"("entries":[{{"record_id":1,"pg_id":0,"process_group":["0","default_pg"],)"
      R"("collective_seq_id":1,"p2p_seq_id":0,"profiling_name":"nccl:all_to_all",)"
      R"("time_created_ns":1790000000000000000,"input_sizes":[[{}]],"input_dtypes":["Float"],)"
      R"("output_sizes":[[{}]],"output_dtypes":["Float"],"state":"{}","retired":false,)"
      R"("is_p2p":false{},"frames":[{{"name":"dispatch","filename":"/srv/moe.py","line":31}}]}}]}})",
      input, output, state, more);
}

model::JobModel read(const std::string& rank0, const std::string& rank1) {
  const tests::TempDir folder;
  const std::vector<std::string> paths = {folder.write("rank_0", rank0),
                                          folder.write("rank_1", rank1)};
  std::vector<base::Error> failures;
  auto job = read_flight_recorder(paths, load, failures);
  EXPECT_TRUE(job);
  return std::move(*job);
}

const detectors::Finding* of_kind(const diagnosis::Diagnosis& diagnosis, std::string_view kind) {
  for (const detectors::Finding& finding : diagnosis.findings) {
    if (finding.kind == kind) {
      return &finding;
    }
  }
  return nullptr;
}

TEST(AllToAllDumps, APairThatDiffersIsNamed) {
  const auto job = read(dump(4, 4, R"(,"input_split_sizes":[1,3],"output_split_sizes":[1,3])"),
                        dump(4, 2, R"(,"input_split_sizes":[3,1],"output_split_sizes":[1,1])"));
  const auto diagnosis = diagnosis::diagnose(job);
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings.front().kind, "mismatched-shape");
  EXPECT_NE(
      diagnosis.findings.front().summary.find("rank 0 sends 3 elements to rank 1, which expects 1"),
      std::string::npos)
      << diagnosis.findings.front().summary;
}

TEST(AllToAllDumps, SplitsThatFitAreNoMismatch) {
  const auto job = read(dump(4, 5, R"(,"input_split_sizes":[1,3],"output_split_sizes":[1,4])"),
                        dump(5, 4, R"(,"input_split_sizes":[4,1],"output_split_sizes":[3,1])"));
  const auto diagnosis = diagnosis::diagnose(job);
  EXPECT_EQ(of_kind(diagnosis, "mismatched-shape"), nullptr);
}

TEST(AllToAllDumps, OneRankThatContradictsItselfIsNoSecondSide) {
  const tests::TempDir folder;
  std::vector<base::Error> failures;
  const auto job = read_flight_recorder(
      {folder.write("rank_1",
                    dump(4, 4, R"(,"input_split_sizes":[1,3],"output_split_sizes":[3,1])"))},
      load, failures);
  ASSERT_TRUE(job);
  const auto diagnosis = diagnosis::diagnose(*job);
  EXPECT_EQ(of_kind(diagnosis, "mismatched-shape"), nullptr);
}

TEST(AllToAllDumps, UnequalSumsOfOlderDumpsAreAMismatchOfNobody) {
  const auto diagnosis = diagnosis::diagnose(read(dump(4, 4, ""), dump(4, 2, "")));
  ASSERT_FALSE(diagnosis.findings.empty());
  const detectors::Finding& first = diagnosis.findings.front();
  EXPECT_EQ(first.kind, "mismatched-shape");
  EXPECT_TRUE(first.culprits.empty());
  EXPECT_NE(first.summary.find("send 8 elements together"), std::string::npos) << first.summary;
  EXPECT_NE(first.summary.find("expect 6"), std::string::npos);
  ASSERT_FALSE(first.locations.empty());
  EXPECT_EQ(first.locations.front().line, 31);
}

TEST(AllToAllDumps, EqualSumsOfUnequalRanksAreLegal) {
  const auto diagnosis = diagnosis::diagnose(read(dump(8, 4, ""), dump(4, 8, "")));
  EXPECT_EQ(of_kind(diagnosis, "mismatched-shape"), nullptr);
}

TEST(AllToAllDumps, WhatIsOverKeepsNoSizes) {
  const auto job = read(dump(4, 4, R"(,"input_split_sizes":[1,3])", "completed"),
                        dump(4, 2, R"(,"input_split_sizes":[-1,"x"])"));
  for (const model::CollectiveCall& call : job.collectives) {
    EXPECT_FALSE(call.splits);
    EXPECT_EQ(call.sent_elements.has_value(), call.rank == 1);
  }
}

}  // namespace
}  // namespace ddpdoctor::imports
