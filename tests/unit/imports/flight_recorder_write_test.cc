// SPDX-License-Identifier: Apache-2.0
// Written dumps are read back by the reader of torch's own.
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "collector/imports/documents/pickle.h"
#include "collector/imports/documents/pickle_write.h"
#include "collector/imports/flight_recorder/flight_recorder.h"
#include "collector/imports/flight_recorder/write.h"
#include "tests/support/job_builder.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::imports {
namespace {

using model::CallState;
using model::JobModel;
using tests::kAll;

base::Result<double> load(const std::string& path, std::string& bytes) {
  std::ifstream file(path, std::ios::binary);
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return 1'790'000'100;
}

WrittenDumps written(const JobModel& job) {
  auto dumps = write_flight_recorder(job);
  EXPECT_TRUE(dumps) << dumps.error().what;
  return dumps ? std::move(*dumps) : WrittenDumps{};
}

std::string names(const WrittenDumps& dumps) {
  std::string out;
  for (const DumpFile& file : dumps.files) {
    out += (out.empty() ? "" : " ") + file.name;
  }
  return out;
}

JobModel read_back(const WrittenDumps& dumps) {
  const tests::TempDir folder;
  std::vector<std::string> paths;
  for (const DumpFile& file : dumps.files) {
    paths.push_back(folder.write(file.name, file.bytes));
  }
  std::vector<base::Error> failures;
  auto job = read_flight_recorder(paths, load, failures);
  EXPECT_TRUE(job) << job.error().what;
  EXPECT_TRUE(failures.empty());
  return job ? std::move(*job) : JobModel{};
}

tests::JobBuilder mismatched() {
  return tests::job()
      .ranks(3)
      .complete_history()
      .all_reduce(kAll, 1, 1024, "step@/srv/train.py:8 | main@/srv/train.py:30")
      .all_reduce({0, 1}, 2, 1024, "step@/srv/train.py:8")
      .call(2, {.operation = "all_gather_into_tensor",
                .sequence = 2,
                .site = "evaluate@/srv/train.py:12",
                .shape = std::vector<std::int64_t>{4, 2},
                .dtype = "bfloat16",
                .state = CallState::kStarted});
}

TEST(FlightRecorderWriter, SaysEveryCallAsItWas) {
  const JobModel job = read_back(written(mismatched().build()));
  EXPECT_EQ(job.world_size, 3);
  ASSERT_EQ(job.groups.size(), 1U);
  EXPECT_EQ(job.groups[0].name, "default_pg");
  EXPECT_EQ(job.groups[0].ranks, (std::vector<model::Rank>{0, 1, 2}));
  ASSERT_EQ(job.collectives.size(), 6U);
  const model::CollectiveCall& first = job.collectives.front();
  EXPECT_EQ(first.operation, "all_reduce");
  EXPECT_EQ(first.count, 1024);
  EXPECT_EQ(first.state, CallState::kCompleted);
  EXPECT_EQ(first.callers.size(), 2U);
  EXPECT_EQ(first.call_site, (model::CallSite{"/srv/train.py", 8, "step"}));
  const model::CollectiveCall& last = job.collectives.back();
  EXPECT_EQ(last.rank, 2);
  EXPECT_EQ(last.sequence, 2);
  EXPECT_EQ(last.operation, "all_gather_into_tensor");
  EXPECT_EQ(last.shape, (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(last.dtype, "bfloat16");
  EXPECT_EQ(last.state, CallState::kStarted);
}

TEST(FlightRecorderWriter, LeavesMessagesAndForeignOperationsOutAndSaysSo) {
  const auto dumps = written(mismatched()
                                 .send(0, 1, 1)
                                 .recv(1, 0, 1)
                                 .call(0, {.operation = "mpi_ibcast", .sequence = 3})
                                 .build());
  ASSERT_EQ(dumps.left_out.size(), 2U);
  EXPECT_EQ(dumps.left_out[0], "2 sends and receives are left out");
  EXPECT_NE(dumps.left_out[1].find("1 calls of mpi_ibcast"), std::string::npos);
  EXPECT_EQ(read_back(dumps).collectives.size(), 6U);
}

TEST(FlightRecorderWriter, ARankThatCalledNothingHasAnEmptyDumpOnlyWhenAllWasRecorded) {
  tests::JobBuilder story = tests::job().ranks(3).all_reduce({0, 1}, 1);
  EXPECT_EQ(names(written(story.build())), "rank_0 rank_1");
  EXPECT_EQ(names(written(story.complete_history().build())), "rank_0 rank_1 rank_2");
  EXPECT_EQ(names(written(story.unobserved(2).build())), "rank_0 rank_1");
}

TEST(FlightRecorderWriter, CallsThatOneRankHasForgottenAreToldByNone) {
  const auto dumps =
      written(tests::job().ranks(2).history(0, 1, 9).history(1, 5, 9).build());  // rank 1: from #5
  for (const model::CollectiveCall& call : read_back(dumps).collectives) {
    EXPECT_GE(call.sequence, 5);
  }
}

TEST(FlightRecorderWriter, WithoutCallsIsAnError) {
  EXPECT_FALSE(write_flight_recorder(tests::job().ranks(2).build()));
}

TEST(PickleWriter, IsReadBackWithAllKindsOfValues) {
  PickleWriter out;
  out.open_dict();
  out.text("a");
  out.open_list();
  for (const std::int64_t value : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, INT64_MAX}) {
    out.whole(value);
  }
  out.close_list();
  out.text("b\xff");
  out.flag(true);
  out.text("c");
  out.text("a");
  out.none();
  out.pair();
  out.close_dict();
  const std::string bytes = out.finish();
  PlainDocument document;
  ASSERT_TRUE(read_pickle(bytes, "x", document));
  const auto numbers = document.items(*document.find(document.root, "a"));
  ASSERT_EQ(numbers.size(), 4U);
  EXPECT_EQ(numbers[0].as_whole(), INT64_MIN);
  EXPECT_EQ(numbers[1].as_whole(), -1);
  EXPECT_EQ(numbers[2].as_whole(), 0);
  EXPECT_EQ(numbers[3].as_whole(), INT64_MAX);
  const auto pair = document.items(*document.find(document.root, "c"));
  ASSERT_EQ(pair.size(), 2U);
  EXPECT_EQ(pair[0].as_text(), "a");
  EXPECT_TRUE(pair[1].is(PlainValue::Kind::kNone));
  EXPECT_EQ(document.items(document.root).size(), 6U);
  EXPECT_NE(document.items(document.root)[2].as_text().find("xff"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::imports
