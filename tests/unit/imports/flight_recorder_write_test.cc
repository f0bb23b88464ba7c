// SPDX-License-Identifier: Apache-2.0
// Written dumps are read back by the reader for torch's dumps.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/imports/documents/pickle.h"
#include "collector/imports/documents/pickle_write.h"
#include "collector/imports/flight_recorder/flight_recorder.h"
#include "collector/imports/flight_recorder/messages.h"
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

TEST(FlightRecorderWriter, LeavesForeignOperationsOutAndSaysSo) {
  const auto dumps =
      written(mismatched().call(0, {.operation = "mpi_ibcast", .sequence = 3}).build());
  ASSERT_EQ(dumps.left_out.size(), 1U);
  EXPECT_NE(dumps.left_out[0].find("1 calls of mpi_ibcast"), std::string::npos);
  EXPECT_EQ(read_back(dumps).collectives.size(), 6U);
}

TEST(FlightRecorderWriter, ASendAndItsReceiveAreReadBackAsTheyWere) {
  const auto dumps = written(mismatched().send(0, 2, 1).recv(2, 0, 1).send(2, 1, 2).build());
  EXPECT_TRUE(dumps.left_out.empty());
  const JobModel job = read_back(dumps);
  ASSERT_EQ(job.groups.size(), 1U);  // pairs are not groups of the job
  EXPECT_EQ(job.groups[0].ranks, (std::vector<model::Rank>{0, 1, 2}));
  std::vector<std::string> messages;
  for (const model::CollectiveCall& call : job.collectives) {
    if (call.point_to_point) {
      messages.push_back(fmt::format("{} {} {} in {}", call.rank, call.operation,
                                     call.peer.value_or(-1), call.group));
    }
  }
  std::sort(messages.begin(), messages.end());
  EXPECT_EQ(messages,
            (std::vector<std::string>{"0 send 2 in 0", "2 recv 0 in 0", "2 send 1 in 0"}));
}

TEST(FlightRecorderWriter, BothSidesOfAMessageHaveOneNumberInTheGroupOfTheirPair) {
  tests::JobBuilder story = tests::job().ranks(3).complete_history();
  // both send before they receive: the two first calls must not be taken for one message
  const JobModel job =
      story.send(1, 2, 1).recv(1, 2, 2).send(2, 1, 1).recv(2, 1, 2).send(0, 1, 1).build();
  const PairedMessages paired = pair_messages(job);
  std::map<std::string, std::vector<std::string>> told;
  for (const PairedMessage& message : paired.messages) {
    told[fmt::format("{} #{}", message.pair->id, message.number)].push_back(
        name_of_message(message));
  }
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told["0/0:1 #1"], (std::vector<std::string>{"send 0->1"}));
  for (const auto& [number, sides] : told) {
    if (sides.size() == 2) {
      EXPECT_EQ(sides[0].substr(0, 4) == "send", sides[1].substr(0, 4) == "recv") << number;
      EXPECT_NE(sides[0].substr(0, 4), sides[1].substr(0, 4)) << number;
    }
  }
}

TEST(FlightRecorderWriter, OfAHistoryWithoutItsBeginningOnlyOpenMessagesAreTold) {
  const auto open = CallState::kStarted;
  const JobModel job =
      tests::job()
          .ranks(2)
          .all_reduce(kAll, 7)
          .call(0, {.operation = "send", .sequence = 1, .peer = 1, .state = CallState::kCompleted})
          .call(0, {.operation = "send", .sequence = 2, .peer = 1, .state = open})
          .build();
  const auto dumps = written(job);
  ASSERT_EQ(dumps.left_out.size(), 1U);
  EXPECT_NE(dumps.left_out[0].find("1 sends and receives that are over"), std::string::npos);
  EXPECT_EQ(pair_messages(job).messages.size(), 1U);
}

TEST(FlightRecorderWriter, WhoReceivesFromAnyRankHasNoPairs) {
  JobModel job = tests::job()
                     .ranks(3)
                     .complete_history()
                     .all_reduce(kAll, 1)
                     .recv(0, 2, 1)
                     .send(1, 0, 1)
                     .send(2, 1, 1)
                     .build();
  for (model::CollectiveCall& call : job.collectives) {
    if (call.operation == "recv") {
      call.peer.reset();
    }
  }
  const PairedMessages paired = pair_messages(job);
  EXPECT_EQ(paired.nameless, 2U);  // the receive, and a send that it may have received
  ASSERT_EQ(paired.messages.size(), 1U);
  EXPECT_EQ(paired.messages[0].call->rank, 2);
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
