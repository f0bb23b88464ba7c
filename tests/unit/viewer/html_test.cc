// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/viewer/story.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {
namespace {

using tests::conditional_barrier;
using tests::diagnosis_of;
using tests::hung_job;

constexpr std::string_view kDataBegins = "<script type=\"application/json\" id=\"report\">";

std::size_t occurrences(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

/// The text between the tags of the data element.
std::string_view data_of(std::string_view page) {
  const std::size_t begin = page.find(kDataBegins);
  if (begin == std::string_view::npos) {
    return {};
  }
  page.remove_prefix(begin + kDataBegins.size());
  return page.substr(0, page.find('<'));
}

TEST(Html, HoldsTheReportOnce) {
  const model::JobModel job = hung_job();
  const std::string page = html(diagnosis_of(job, {conditional_barrier()}));
  const auto report = nlohmann::json::parse(data_of(page));
  EXPECT_EQ(report["findings"][0]["kind"], "rank-conditional-collective");
  EXPECT_EQ(report["sources"][tests::kScript]["61"], "        dist.barrier()");
  EXPECT_EQ(occurrences(page, kDataBegins), 1U);
  EXPECT_EQ(occurrences(page, "@@"), 0U);
}

TEST(Html, LetsNoTextOfTheJobOutOfTheDataElement) {
  const std::string hostile = "</script><script>alert(1)</script><!--<script><img src=x onerror=y>";
  model::JobModel job = hung_job();
  job.command = {hostile};
  job.hosts = {hostile};
  job.sources[tests::kScript][61] = hostile;
  job.coverage.warnings = {hostile};
  for (model::Process& process : job.observations.back().processes) {
    process.command = {hostile};
    for (model::Thread& thread : process.threads) {
      thread.name = hostile;
      for (model::Frame& frame : thread.frames) {
        frame.function = hostile;
        frame.locals = {{hostile, hostile}};
      }
    }
  }
  detectors::Finding finding = conditional_barrier();
  finding.summary = hostile;
  finding.fix = hostile;
  finding.details = {{hostile, hostile}};
  const model::JobModel calm = hung_job();
  const std::string page = html(diagnosis_of(job, {finding}));
  const std::string other = html(diagnosis_of(calm, {conditional_barrier()}));
  EXPECT_EQ(occurrences(page, "<"), occurrences(other, "<"));
  const auto report = nlohmann::json::parse(data_of(page));
  EXPECT_EQ(report["findings"][0]["summary"], hostile);
}

TEST(Html, KeepsTheMarkersOfThePageApartFromTheJobsText) {
  model::JobModel job = hung_job();
  job.command = {"@@SCRIPT@@ @@STYLE@@ @@DATA@@"};
  const std::string page = html(diagnosis_of(job, {}));
  EXPECT_EQ(nlohmann::json::parse(data_of(page))["job"]["command"][0],
            "@@SCRIPT@@ @@STYLE@@ @@DATA@@");
}

TEST(Html, LoadsNothing) {
  const model::JobModel job = hung_job();
  const std::string page = html(diagnosis_of(job, {conditional_barrier()}));
  for (const char* word : {" src=", "@import", "fetch(", "https://", "innerHTML", "eval("}) {
    EXPECT_EQ(occurrences(page, word), 0U) << word;
  }
}

TEST(Html, OfAThousandRanksIsSmall) {
  model::JobModel job = hung_job();
  std::vector<model::Process>& processes = job.observations.back().processes;
  const auto stacked = std::find_if(processes.begin(), processes.end(), [](const auto& process) {
    return !process.threads.empty() && !process.threads.front().frames.empty();
  });
  ASSERT_NE(stacked, processes.end());
  const model::Process pattern = *stacked;
  const auto rank_in = [&pattern](int rank, int threads) {
    model::Process process = pattern;
    process.rank = rank;
    process.pid = 1000 + rank * 20;
    model::Thread thread = process.threads.front();
    for (int i = 0; i < threads; ++i) {
      thread.tid = process.pid + i;
      thread.frames.front().locals = {{"step", std::to_string(rank)}};
      process.threads.push_back(thread);
    }
    return process;
  };
  processes.clear();
  for (int rank = 0; rank < 1024; ++rank) {
    processes.push_back(rank_in(rank, 8));
  }
  job.world_size = 1024;
  EXPECT_LT(html(diagnosis_of(job, {conditional_barrier()})).size(), std::size_t{2} << 20U);
}

TEST(Html, RepeatsOfProcessesTakeFewBytesAndNothingIsLeftOut) {
  model::JobModel job = hung_job();
  std::vector<model::Process>& processes = job.observations.back().processes;
  processes.clear();
  model::ProcessGroup world{.id = "0", .name = "default_pg", .backend = "gloo", .ranks = {}};
  constexpr int kRanks = 4096;
  for (int rank = 0; rank < kRanks; ++rank) {
    model::Process process;
    process.rank = rank;
    process.role = model::Role::kRank;
    process.pid = 1000 + rank * 20;
    process.host = "node" + std::to_string(rank / 128);
    for (int i = 0; i < 6; ++i) {
      model::Thread& thread = process.threads.emplace_back();
      thread.tid = process.pid + i;
      thread.name = "pt_worker_" + std::to_string(i);
      model::Frame& frame = thread.frames.emplace_back();
      frame.function = "wait";
      frame.file = tests::kScript;
      frame.line = 88;
    }
    processes.push_back(process);
    world.ranks.push_back(rank);
  }
  job.groups = {world};
  job.world_size = kRanks;
  const std::string page = html(diagnosis_of(job, {conditional_barrier()}));
  EXPECT_LT(page.size(), std::size_t{600} << 10U);
  const auto report = nlohmann::json::parse(data_of(page));
  EXPECT_FALSE(report.contains("left_out"));
  EXPECT_EQ(report["process_kinds"].size(), 1U);
  const auto& row = report["processes"][kRanks - 1];
  EXPECT_EQ(row[0], kRanks - 1);
  EXPECT_EQ(report["process_hosts"][row[3].get<std::size_t>()], "node31");
  EXPECT_EQ(row[5], nlohmann::json({0, 1, 2, 3, 4, 5}));
}

TEST(Html, KeepsTheOrderOfAGroupsMembers) {
  model::JobModel job = hung_job();
  job.groups = {{.id = "0", .name = "default_pg", .backend = "gloo", .ranks = {0, 1, 2, 3}},
                {.id = "7", .name = "odd", .backend = "gloo", .ranks = {3, 1}}};
  const auto report =
      nlohmann::json::parse(data_of(html(diagnosis_of(job, {conditional_barrier()}))));
  EXPECT_EQ(report["groups"][0]["ranks"], "0-3");
  EXPECT_EQ(report["groups"][1]["ranks"], nlohmann::json({3, 1}));
}

}  // namespace
}  // namespace ddpdoctor::viewer
