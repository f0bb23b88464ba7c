// SPDX-License-Identifier: Apache-2.0
// The formats that other programs draw: trace events and Graphviz.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/viewer/story.h"
#include "viewer/rank_words.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {
namespace {

using nlohmann::json;
using tests::job;
using tests::kAll;

std::vector<json> events(const std::string& text, const std::string& phase) {
  std::vector<json> out;
  const json all = json::parse(text);
  for (const json& event : all["traceEvents"]) {
    if (event["ph"] == phase) {
      out.push_back(event);
    }
  }
  return out;
}

/// Two calls of all_reduce #1 that end at 101 s, and rank 0's #2 that does not end.
model::JobModel timed_job() {
  model::JobModel timed = job()
                              .ranks(2)
                              .call(0, {.operation = "all_reduce", .sequence = 1, .time = 100.0})
                              .call(1, {.operation = "all_reduce", .sequence = 1, .time = 100.5})
                              .call(0, {.operation = "all_reduce", .sequence = 2, .time = 102.0})
                              .seconds_without_progress(8)
                              .build();
  for (model::CollectiveCall& call : timed.collectives) {
    if (call.sequence == 1) {
      call.end_time = 101.0;
    }
  }
  return timed;
}

TEST(Trace, DrawsCallsOnTheirRankInMicrosecondsSinceTheFirst) {
  const model::JobModel timed = timed_job();
  const std::vector<json> slices = events(trace(tests::diagnosis_of(timed, {})), "X");
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_EQ(slices[0]["name"], "all_reduce #1");
  EXPECT_EQ(slices[0]["pid"], 0);
  EXPECT_DOUBLE_EQ(slices[0]["ts"], 0);
  EXPECT_DOUBLE_EQ(slices[0]["dur"], 1e6);
  EXPECT_EQ(slices[1]["pid"], 1);
  EXPECT_DOUBLE_EQ(slices[1]["dur"], 0.5e6);
}

TEST(Trace, AnUnfinishedCallLastsUntilTheLook) {
  const model::JobModel timed = timed_job();
  const std::vector<json> slices = events(trace(tests::diagnosis_of(timed, {})), "X");
  EXPECT_DOUBLE_EQ(slices[2]["dur"], 8e6);
  EXPECT_EQ(slices[2]["args"]["state"], "waiting");
}

TEST(Trace, ArrowsJoinTheCallsOfOneCollective) {
  const model::JobModel timed = timed_job();
  const std::string text = trace(tests::diagnosis_of(timed, {}));
  ASSERT_EQ(events(text, "s").size(), 1U);
  ASSERT_EQ(events(text, "f").size(), 1U);
  EXPECT_EQ(events(text, "s")[0]["pid"], 0);
  EXPECT_EQ(events(text, "f")[0]["pid"], 1);
  EXPECT_EQ(events(text, "s")[0]["id"], events(text, "f")[0]["id"]);
}

TEST(Trace, CallsThatOverlapHaveTracksOfTheirOwn) {
  model::JobModel timed = timed_job();
  timed.collectives.push_back(timed.collectives.back());
  timed.collectives.back().sequence = 3;
  timed.collectives.back().time = 103.0;
  const std::vector<json> slices = events(trace(tests::diagnosis_of(timed, {})), "X");
  ASSERT_EQ(slices.size(), 4U);
  EXPECT_NE(slices[2]["tid"], slices[3]["tid"]);
}

TEST(Trace, MarksTheCulprit) {
  const model::JobModel timed = timed_job();
  detectors::Finding finding = tests::conditional_barrier();
  finding.culprits = {1};
  const std::vector<json> marks = events(trace(tests::diagnosis_of(timed, {finding})), "i");
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks[0]["pid"], 1);
  EXPECT_EQ(marks[0]["name"], finding.kind);
}

TEST(Trace, OfAJobWithoutTimesIsEmptyAndSaysHowManyAreLeftOut) {
  model::JobModel timed = timed_job();
  for (model::CollectiveCall& call : timed.collectives) {
    call.time.reset();
  }
  const json all = json::parse(trace(tests::diagnosis_of(timed, {})));
  EXPECT_TRUE(all["traceEvents"].empty());
  EXPECT_EQ(all["otherData"]["calls_left_out"], 3);
}

TEST(Dot, RanksThatWaitAlikeAreOneNodeAndTheCulpritIsFilled) {
  const model::JobModel hung = tests::hung_job();
  detectors::Finding finding = tests::conditional_barrier();
  diagnosis::Diagnosis told = diagnosis::diagnose(hung);
  told.findings = {finding};
  const std::string text = dot(told);
  EXPECT_NE(text.find("label=\"ranks 0-1,3\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"rank:2\" [label=\"rank 2\", style=filled"), std::string::npos) << text;
  EXPECT_NE(text.find("\"rank:0\" -> \"rank:2\" [label=\""), std::string::npos) << text;
}

TEST(Dot, ManyRanksOnTwoSidesAreTwoNodes) {
  constexpr int kRanks = 200;
  std::vector<model::Rank> others;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank != 100) {
      others.push_back(rank);
    }
  }
  const model::JobModel hung = job().ranks(kRanks).build();
  diagnosis::Diagnosis told = tests::diagnosis_of(hung, {});
  told.examination.waits.add({.waiting = model::RankSet(others), .missing = {100}, .why = "a"});
  told.examination.waits.add({.waiting = {100}, .missing = model::RankSet(others), .why = "b"});
  const std::string text = dot(told);
  EXPECT_NE(text.find("[label=\"ranks 0-99,101-199\""), std::string::npos) << text;
  EXPECT_NE(text.find("[label=\"rank 100\""), std::string::npos) << text;
  std::size_t nodes = 0;
  for (std::size_t at = text.find("  \"rank:"); at != std::string::npos;
       at = text.find("  \"rank:", at + 1)) {
    ++nodes;
  }
  EXPECT_EQ(nodes, 4U) << text;  // two boxes, two arrows
}

TEST(RankWords, EveryNthRankIsSaidAsAStep) {
  EXPECT_EQ(rank_words({3}), "rank 3");
  EXPECT_EQ(rank_words({0, 2, 4}), "ranks 0,2,4");
  EXPECT_EQ(rank_words({517, 525, 533, 541}), "ranks 517-541 step 8");
  std::vector<model::Rank> scattered;
  for (int rank = 0; rank < 3000; rank += rank % 7 + 2) {
    scattered.push_back(rank);
  }
  EXPECT_EQ(rank_words(model::RankSet(scattered)).find("ranks"),
            rank_words(model::RankSet(scattered)).size() - 5);
}

TEST(Dot, HostileTextStaysInsideItsQuotes) {
  const model::JobModel hung = job().ranks(2).all_reduce(kAll, 1).build();
  detectors::Finding finding = tests::conditional_barrier();
  finding.summary = "a\"]; x [label=\"\n\\";
  const std::string text = dot(tests::diagnosis_of(hung, {finding}));
  const std::size_t at = text.find("  label=");
  ASSERT_NE(at, std::string::npos);
  const std::string line = text.substr(at, text.find('\n', at) - at);
  EXPECT_TRUE(line.starts_with("  label=\"a\\\"]; x [label=\\\"")) << line;
  EXPECT_TRUE(line.ends_with("\";")) << line;
}

}  // namespace
}  // namespace ddpdoctor::viewer
