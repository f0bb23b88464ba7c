// SPDX-License-Identifier: Apache-2.0
// Dumps given as JSON, with the same content as torch's pickles.
#include "collector/imports/flight_recorder/flight_recorder.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/imports/flight_recorder/parts.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::imports {
namespace {

using model::CallState;
using tests::TempDir;

constexpr double kWritten = 1'790'000'100;  // 100 s after the first calls

base::Result<double> load(const std::string& path, std::string& bytes) {
  std::ifstream file(path, std::ios::binary);
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return kWritten;
}

struct Entry {
  int sequence = 1;
  std::string name = "nccl:all_reduce";
  std::string state = "completed";
  std::string group = "0";
  int line = 10;
  std::string sizes = "[[8]]";
  bool peer = false;
};

std::string json_of(const Entry& entry, int record) {
  return fmt::format(
      R"({{"record_id":{},"pg_id":0,"process_group":["{}","undefined"],"collective_seq_id":{},)"
      R"("p2p_seq_id":{},"profiling_name":"{}","time_created_ns":{},"input_sizes":{},)"
      R"("input_dtypes":["Float"],"output_sizes":{},"output_dtypes":["Float"],"state":"{}",)"
      R"("retired":{},"is_p2p":{},"frames":[)"
      R"({{"name":"all_reduce","filename":"/usr/lib/python3/dist-packages/torch/distributed/x.py","line":3}},)"
      R"({{"name":"step","filename":"/srv/train.py","line":{}}}]}})",
      record, entry.group, entry.sequence, entry.peer ? entry.sequence : 0, entry.name,
      1'790'000'000'000'000'000 + record * 1'000'000, entry.sizes, entry.sizes, entry.state,
      entry.state == "completed", entry.peer, entry.line);
}

std::string dump(const std::vector<Entry>& entries, std::string_view members = "[0, 1]",
                 std::string_view more_groups = "") {
  std::string text = fmt::format(
      R"({{"version":"2.10","pg_config":{{"0":{{"name":"0","desc":"default_pg","ranks":"{}"}}{}}},"entries":[)",
      members, more_groups);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    text += (i == 0 ? "" : ",") + json_of(entries[i], static_cast<int>(i));
  }
  return text + "]}";
}

std::vector<Entry> completed(int count) {
  std::vector<Entry> out;
  for (int i = 1; i <= count; ++i) {
    out.push_back({.sequence = i, .line = 10 + i % 3});
  }
  return out;
}

/// Dumps by rank.
struct Read {
  base::Result<model::JobModel> job;
  std::vector<base::Error> failures;
};

Read read(const TempDir& folder, const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    paths.push_back(folder.path(name));
  }
  Read out{.job = base::failure(""), .failures = {}};
  out.job = read_flight_recorder(paths, load, out.failures);
  return out;
}

const model::CollectiveCall* call_at(const model::JobModel& job, model::Rank rank,
                                     std::int64_t sequence) {
  const auto found = std::find_if(
      job.collectives.begin(), job.collectives.end(),
      [&](const auto& call) { return call.rank == rank && call.sequence == sequence; });
  return found == job.collectives.end() ? nullptr : &*found;
}

TEST(FlightRecorder, SaysWhatEachRankCalled) {
  const TempDir folder;
  folder.write("rank_0", dump({{.sequence = 1}, {.sequence = 2, .state = "started", .line = 12}}));
  folder.write("rank_1", dump({{.sequence = 1}}));
  const Read result = read(folder, {"rank_0", "rank_1"});
  ASSERT_TRUE(result.job) << result.job.error().what;
  const model::CollectiveCall* call = call_at(*result.job, 0, 2);
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->operation, "all_reduce");
  EXPECT_EQ(call->dtype, "float32");
  EXPECT_EQ(call->shape, std::vector<std::int64_t>{8});
  EXPECT_EQ(call->state, CallState::kStarted);
  EXPECT_EQ(call->call_site.file, "/srv/train.py");
  EXPECT_EQ(call->call_site.line, 12);
  EXPECT_EQ(call->call_site.function, "step");
  EXPECT_EQ(result.job->world_size, 2);
  ASSERT_EQ(result.job->groups.size(), 1U);
  EXPECT_EQ(result.job->groups[0].backend, "nccl");
  EXPECT_EQ(result.job->progress, model::Progress::kStill);
}

TEST(FlightRecorder, GlooEndsACallByRetiringIt) {
  const TempDir folder;
  std::string text = dump({{.sequence = 1, .name = "gloo:all_reduce", .state = "scheduled"}});
  const std::string retired = R"("retired":false)";
  text.replace(text.find(retired), retired.size(), R"("retired":true)");
  folder.write("rank_0", text);
  const Read result = read(folder, {"rank_0"});
  ASSERT_TRUE(result.job);
  EXPECT_EQ(result.job->collectives.at(0).state, CallState::kCompleted);
}

TEST(FlightRecorder, KeepsWhatIsAroundThePartingOnly) {
  const TempDir folder;
  folder.write("rank_0", dump(completed(500)));
  folder.write("rank_1", dump(completed(499)));
  const Read result = read(folder, {"rank_0", "rank_1"});
  ASSERT_TRUE(result.job);
  EXPECT_LT(result.job->collectives.size(), 100U);
  EXPECT_NE(call_at(*result.job, 0, 500), nullptr);
  EXPECT_NE(call_at(*result.job, 0, 490), nullptr);
  EXPECT_EQ(call_at(*result.job, 1, 500), nullptr);
}

TEST(FlightRecorder, AnEarlyDifferenceOfLinesIsKept) {
  const TempDir folder;
  std::vector<Entry> other = completed(300);
  other[99].line = 77;
  folder.write("rank_0", dump(completed(300)));
  folder.write("rank_1", dump(other));
  const Read result = read(folder, {"rank_0", "rank_1"});
  ASSERT_TRUE(result.job);
  const model::CollectiveCall* odd = call_at(*result.job, 1, 100);
  ASSERT_NE(odd, nullptr);
  EXPECT_EQ(odd->call_site.line, 77);
}

TEST(FlightRecorder, PeersAreGlobalRanks) {
  const TempDir folder;
  const std::string pair = R"(,"7":{"name":"7","desc":"pp","ranks":"[2, 5]"})";
  folder.write("rank_2", dump({{.sequence = 4,
                                .name = "nccl:send 0->1",
                                .state = "started",
                                .group = "7",
                                .peer = true}},
                              "[0, 1, 2, 3, 4, 5]", pair));
  const Read result = read(folder, {"rank_2"});
  ASSERT_TRUE(result.job);
  ASSERT_EQ(result.job->collectives.size(), 1U);
  EXPECT_EQ(result.job->collectives[0].operation, "send");
  EXPECT_TRUE(result.job->collectives[0].point_to_point);
  EXPECT_EQ(result.job->collectives[0].peer, 5);
}

TEST(FlightRecorder, APeerInAGroupOfUnknownMembersIsUnknown) {
  const TempDir folder;
  const Entry entry{.name = "gloo:send 0->1", .state = "scheduled", .group = "7", .peer = true};
  folder.write("rank_2", dump({entry}, "[0, 1, 2, 3, 4, 5]"));
  const Read result = read(folder, {"rank_2"});
  ASSERT_TRUE(result.job);
  ASSERT_EQ(result.job->collectives.size(), 1U);
  EXPECT_EQ(result.job->collectives[0].peer, std::nullopt);
}

/// The same calls by a process that makes them this much later.
std::string later(std::string text, int seconds) {
  const std::string moment = "17900000";
  for (std::size_t at = text.find(moment); at != std::string::npos;
       at = text.find(moment, at + 10)) {
    text.replace(at, 10, std::to_string(std::stoll(text.substr(at, 10)) + seconds));
  }
  return text;
}

/// Calls every 20 s, so that the processes overlap in time.
std::string slow_dump(int count) {
  std::string text = dump(completed(count));
  for (int i = count - 1; i > 0; --i) {
    const std::string time = fmt::format("{}", 1'790'000'000'000'000'000 + i * 1'000'000);
    text.replace(text.find(time), 10, std::to_string(1'790'000'000 + 20 * i));
  }
  return text;
}

TEST(FlightRecorder, DumpsOfTwoProcessesWithOneNumberAreNotUsed) {
  const TempDir folder;
  folder.write("a_dump_0", slow_dump(4));
  folder.write("b_dump_0", later(slow_dump(4), 1));
  folder.write("a_dump_1", slow_dump(3));
  const Read some = read(folder, {"a_dump_0", "a_dump_1", "b_dump_0"});
  ASSERT_TRUE(some.job) << some.job.error().what;
  EXPECT_EQ(some.job->coverage.unobserved_ranks, model::RankSet{0});
  EXPECT_EQ(some.job->coverage.unobserved,
            std::vector<std::string>{"rank 0: dumps of several processes have this number"});
  EXPECT_EQ(call_at(*some.job, 0, 1), nullptr);
  EXPECT_NE(some.job->coverage.warnings.at(0).find("b_dump_0 both say rank 0"), std::string::npos);
  const Read none = read(folder, {"a_dump_0", "b_dump_0"});
  ASSERT_FALSE(none.job);
  EXPECT_NE(none.job.error().what.find("two processes wrote them"), std::string::npos);
}

TEST(FlightRecorder, OfTwoDumpsOfOneProcessOrTwoRunsTheNewerIsUsed) {
  const TempDir folder;
  folder.write("a_dump_0", slow_dump(3));
  folder.write("b_dump_0", slow_dump(4));
  folder.write("c_dump_0", later(dump(completed(2)), 900));
  const Read result = read(folder, {"a_dump_0", "b_dump_0"});
  ASSERT_TRUE(result.job);
  EXPECT_NE(call_at(*result.job, 0, 4), nullptr);
  EXPECT_EQ(result.job->coverage.warnings,
            std::vector<std::string>{"1 dump is of a rank that another dump covers, too, and was "
                                     "left out: " +
                                     folder.path("a_dump_0")});
  const Read runs = read(folder, {"b_dump_0", "c_dump_0"});
  ASSERT_TRUE(runs.job);
  EXPECT_EQ(call_at(*runs.job, 0, 4), nullptr);
}

TEST(FlightRecorder, NamesWithoutNumbersAreToldAsThat) {
  const TempDir folder;
  for (const char* name : {"a.bin", "b.bin", "c.bin"}) {
    folder.write(name, dump(completed(2)));
  }
  const Read result = read(folder, {"a.bin", "b.bin", "c.bin"});
  ASSERT_FALSE(result.job);
  EXPECT_TRUE(result.job.error().what.ends_with(
      "a.bin is unknown: its name has no number (nor has that of 2 more dumps)"));
}

TEST(FlightRecorder, GroupsOfOneNameWithOtherMembersAreOthers) {
  const TempDir folder;
  const Entry entry{.group = "1"};
  folder.write("rank_0", dump({entry}, "[0, 1, 2, 3]", R"(,"1":{"name":"1","ranks":"[0, 1]"})"));
  folder.write("rank_2", dump({entry}, "[0, 1, 2, 3]", R"(,"1":{"name":"1","ranks":"[2, 3]"})"));
  const Read result = read(folder, {"rank_0", "rank_2"});
  ASSERT_TRUE(result.job);
  EXPECT_NE(call_at(*result.job, 0, 1)->group, call_at(*result.job, 2, 1)->group);
}

TEST(FlightRecorder, ARankWithoutDumpIsUnobserved) {
  const TempDir folder;
  folder.write("nccl_trace_rank_0", dump(completed(3), "[0, 1, 2]"));
  folder.write("nccl_trace_rank_2", dump(completed(3), "[0, 1, 2]"));
  const Read result = read(folder, {"nccl_trace_rank_0", "nccl_trace_rank_2"});
  ASSERT_TRUE(result.job);
  EXPECT_EQ(result.job->world_size, 3);
  EXPECT_EQ(result.job->coverage.unobserved_ranks, model::RankSet{1});
}

TEST(FlightRecorder, ACutDumpDoesNotMakeItsRankLate) {
  const TempDir folder;
  const std::string whole = dump(completed(50));
  folder.write("rank_0", whole);
  folder.write("rank_1", whole.substr(0, whole.size() / 2));
  const Read result = read(folder, {"rank_0", "rank_1"});
  ASSERT_TRUE(result.job);
  EXPECT_EQ(result.job->coverage.unobserved_ranks, model::RankSet{1});
  EXPECT_EQ(call_at(*result.job, 1, 1), nullptr);
  const Read cut_only = read(folder, {"rank_1"});
  ASSERT_FALSE(cut_only.job);
  EXPECT_NE(cut_only.job.error().what.find("rank_1 is cut"), std::string::npos);
}

TEST(FlightRecorder, AnEmptyDumpWasReadAllTheSame) {
  const TempDir folder;
  folder.write("rank_0", dump({{.state = "started"}}));
  folder.write("rank_1", dump({}));
  const Read result = read(folder, {"rank_0", "rank_1"});
  ASSERT_TRUE(result.job);
  EXPECT_TRUE(result.job->coverage.unobserved_ranks.empty());
  EXPECT_EQ(result.job->facts.size(), 2U);
}

TEST(FlightRecorder, OneThatWouldRunSomethingSpoilsTheFolder) {
  const TempDir folder;
  folder.write("rank_0", dump(completed(3)));
  folder.write("rank_1", "\x80\x02}U\7entriescposix\nsystem\nU\4true\x85Rs.");
  const Read result = read(folder, {"rank_0", "rank_1"});
  ASSERT_FALSE(result.job);
  EXPECT_NE(result.job.error().what.find("rank_1 is refused: it wants posix.system"),
            std::string::npos);
}

TEST(FlightRecorder, WhatIsNoDumpIsAFailureAmongDumps) {
  const TempDir folder;
  folder.write("rank_0", dump(completed(3)));
  folder.write("rank_1", R"({"entries":7})");
  folder.write("nobody", dump(completed(3)));
  const Read result = read(folder, {"nobody", "rank_0", "rank_1"});
  ASSERT_TRUE(result.job);
  ASSERT_EQ(result.failures.size(), 2U);
  EXPECT_NE(result.failures[0].what.find("its name has no number"), std::string::npos);
  EXPECT_NE(result.failures[1].what.find("no list \"entries\""), std::string::npos);
}

TEST(FlightRecorder, AJobThatJustCalledSomethingIsNotStill) {
  const TempDir folder;
  std::string text = dump({{.state = "started"}});
  const std::string then = "1790000000000000000";
  text.replace(text.find(then), then.size(), "1790000099900000000");
  folder.write("rank_0", text);
  const Read result = read(folder, {"rank_0"});
  ASSERT_TRUE(result.job);
  EXPECT_EQ(result.job->progress, model::Progress::kUnknown);
}

TEST(FlightRecorder, FilesAreKnownByTheirBeginning) {
  EXPECT_TRUE(is_flight_recorder_dump(dump(completed(1)), "x.json"));
  EXPECT_TRUE(is_flight_recorder_dump("\x80\x02}q", "/tmp/trace_rank_3"));
  EXPECT_FALSE(is_flight_recorder_dump("\x80\x02}q", "/tmp/checkpoint.bin"));
  EXPECT_FALSE(is_flight_recorder_dump("rank 3 failed\n", "log_rank_3"));
  EXPECT_FALSE(is_flight_recorder_dump(R"({"schema":"ddpdoctor.capture/1"})", "x.json"));
}

TEST(RankInName, IsTheNumberAfterRankElseTheLastOne) {
  EXPECT_EQ(rank_in_name("/a/nccl_trace_rank_12"), 12);
  EXPECT_EQ(rank_in_name("rank3"), 3);
  EXPECT_EQ(rank_in_name("node7/_dump_4"), 4);
  EXPECT_EQ(rank_in_name("rank_2.json"), 2);
  EXPECT_EQ(rank_in_name("rank-5_step100.pkl"), 5);
  EXPECT_EQ(rank_in_name("trace"), std::nullopt);
  EXPECT_EQ(rank_in_name("rank_99999999999"), std::nullopt);
}

}  // namespace
}  // namespace ddpdoctor::imports
