// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/json_schema.h"
#include "tests/support/places.h"
#include "tests/unit/viewer/story.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {
namespace {

using tests::conditional_barrier;
using tests::diagnosis_of;
using tests::hung_job;

std::string report_schema() {
  const std::ifstream file(tests::source_file("docs/report.schema.json"));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The hang of story.h with groups, edges, a dead process and every optional field.
diagnosis::Diagnosis full_diagnosis(const model::JobModel& job) {
  auto diagnosis = diagnosis_of(job, {conditional_barrier()});
  const model::CollectiveCall call{
      .rank = 0,
      .group = "0",
      .sequence = 1043,
      .operation = "all_reduce",
      .count = 10,
      .shape = std::vector<std::int64_t>{10},
      .dtype = "float32",
      .reduce_op = "sum",
      .root = {},
      .peer = {},
      .splits = {},
      .output_splits = {},
      .time = {},
      .end_time = {},
      .call_site = {.file = tests::kScript, .line = 88, .function = "train_step"},
      .callers = {}};
  const graph::Divergence divergence{
      .group = "0",
      .sequence = 1043,
      .calls = {{.ranks = {0, 1, 3}, .call = call}, {.ranks = {2}, .call = {}}}};
  graph::GroupView view;
  view.group = job.groups.front();
  view.progress = {{.rank = 0, .enqueued = 1043, .completed = 1042}};
  view.first_divergence = divergence;
  diagnosis.examination.groups.push_back(view);
  diagnosis.examination.waits.add({.from = "rank:0",
                                   .to = "rank:2",
                                   .kind = graph::EdgeKind::kCollective,
                                   .why = "all_reduce #1043 of default_pg"});
  return diagnosis;
}

model::JobModel full_job() {
  model::JobModel job = hung_job();
  job.hosts = {"node0"};
  job.launcher_pid = tests::kLauncherPid;
  job.coverage.observed = {"stacks of 5 processes"};
  job.coverage.unobserved_ranks = {3};
  model::Process& process = job.observations.back().processes.front();
  process.exit = model::Exit{.status = {}, .signal = 9};
  process.role = model::Role::kResourceTracker;
  process.threads.front().waits_on =
      model::WaitsOn{.kind = "mutex", .target = "thread:77", .detail = {}};
  process.threads.front().gil = true;
  return job;
}

TEST(Json, MarksAnOutcomeThatWasNotReadAsDerived) {
  detectors::Finding finding = conditional_barrier();
  finding.locations.back().outcomes = {{.ranks = {0, 1, 3},
                                        .expression = "rank == 2",
                                        .value = "False",
                                        .reason = "skipped line 61"}};
  const auto report = nlohmann::json::parse(json(diagnosis_of(hung_job(), {finding})));
  EXPECT_EQ(report["findings"][0]["locations"][2]["values"],
            nlohmann::json::parse(R"([{"ranks": [0, 1, 3], "expression": "rank == 2",
                "value": "False", "state": "derived", "reason": "skipped line 61"}])"));
}

TEST(Json, FitsItsSchema) {
  const model::JobModel job = full_job();
  EXPECT_EQ(tests::schema_errors(json(full_diagnosis(job)), report_schema()),
            std::vector<std::string>{});
  const model::JobModel nothing;
  EXPECT_EQ(tests::schema_errors(json(diagnosis_of(nothing, {})), report_schema()),
            std::vector<std::string>{});
}

TEST(Json, TheSchemaRefusesWhatIsNoReport) {
  EXPECT_FALSE(tests::schema_errors(R"({"schema":"ddpdoctor.report/1"})", report_schema()).empty());
  const model::JobModel job = full_job();
  nlohmann::json report = nlohmann::json::parse(json(full_diagnosis(job)));
  report["findings"][0]["confidence"] = "sure";
  EXPECT_EQ(tests::schema_errors(report.dump(), report_schema()).size(), 1U);
}

TEST(Json, IsTheContractToTheLetter) {
  const model::JobModel job = full_job();
  const auto report = nlohmann::json::parse(json(full_diagnosis(job)));
  EXPECT_EQ(report["schema"], "ddpdoctor.report/1");
  EXPECT_EQ(report["verdict"], "hang");
  EXPECT_EQ(report["job"]["world_size"], 4);
  EXPECT_EQ(report["job"]["seconds_without_progress"], 252.0);
  const auto& finding = report["findings"][0];
  EXPECT_EQ(finding["culprits"], nlohmann::json({2}));
  EXPECT_EQ(finding["waiting"], nlohmann::json({0, 1, 3}));
  EXPECT_EQ(finding["locations"][0]["line"], 61);
  EXPECT_EQ(finding["details"]["parameters"], nlohmann::json({"router.1.weight"}));
  const auto& group = report["groups"][0];
  EXPECT_EQ(group["id"], "0");
  EXPECT_EQ(group["progress"][0],
            nlohmann::json::parse(R"({"rank":0,"enqueued":1043,"completed":1042})"));
  EXPECT_EQ(group["first_divergence"]["sequence"], 1043);
  EXPECT_EQ(group["first_divergence"]["calls"][0]["call_site"]["line"], 88);
  EXPECT_EQ(group["first_divergence"]["calls"][1]["operation"], nullptr);
  EXPECT_EQ(report["wait_for"]["edges"][0],
            nlohmann::json::parse(
                R"({"from":"rank:0","to":"rank:2","why":"all_reduce #1043 of default_pg"})"));
  EXPECT_EQ(report["coverage"]["events_lost"], 0);
}

TEST(Json, FramesAreInnermostFirstAndTheStackDiffOutermost) {
  const model::JobModel job = hung_job();
  const auto report = nlohmann::json::parse(json(diagnosis_of(job, {})));
  const auto& processes = report["processes"];
  const auto rank = std::find_if(processes.begin(), processes.end(), [](const auto& process) {
    return process.value("rank", -1) == 2;
  });
  ASSERT_NE(rank, processes.end());
  EXPECT_EQ((*rank)["role"], "rank");
  const auto& frames = (*rank)["threads"][0]["frames"];
  EXPECT_EQ(frames[0],
            nlohmann::json::parse(
                R"({"language":"native","function":"epoll_wait","module":"libc.so.6"})"));
  EXPECT_EQ(frames[3],
            nlohmann::json::parse(
                R"({"language":"python","function":"evaluate","file":"/srv/train.py","line":61})"));
  EXPECT_EQ(report["stack_diff"][0]["ranks"], nlohmann::json({0, 1, 2, 3}));
}

TEST(Json, HelpersOfPythonAreOther) {
  const model::JobModel job = full_job();
  const auto report = nlohmann::json::parse(json(full_diagnosis(job)));
  EXPECT_EQ(report["processes"][0]["role"], "other");
  EXPECT_EQ(report["processes"][0]["exit"], nlohmann::json::parse(R"({"signal":9})"));
}

TEST(Json, HoldsNoBytesThatAreNoText) {
  model::JobModel job = hung_job();
  job.observations.back().processes.back().threads.front().name = "\xff\x1b[2J";
  job.command = {"a\xc3"};
  const std::string text = json(diagnosis_of(job, {}));
  EXPECT_FALSE(nlohmann::json::parse(text, nullptr, false).is_discarded());
  EXPECT_NE(text.find(R"(\\xff\\x1b[2J)"), std::string::npos);
}

TEST(Json, IsTheSameForTheSameDiagnosis) {
  const model::JobModel job = full_job();
  EXPECT_EQ(json(full_diagnosis(job)), json(full_diagnosis(job)));
}

}  // namespace
}  // namespace ddpdoctor::viewer
