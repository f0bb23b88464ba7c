// SPDX-License-Identifier: Apache-2.0
#include "collector/model/host_pids.h"

#include <set>

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

/// Two containers whose processes have the same numbers.
JobModel two_containers() {
  JobModel job;
  Observation& look = job.observations.emplace_back();
  for (const char* host : {"a", "b"}) {
    for (const pid_t pid : {1, 7}) {
      Process& process = look.processes.emplace_back();
      process.host = host;
      process.pid = pid;
      process.ppid = pid == 7 ? 1 : 0;
      process.role = pid == 7 ? Role::kRank : Role::kLauncher;
      if (pid == 7) {
        process.rank = host == std::string("a") ? 0 : 1;
      }
      Thread& thread = process.threads.emplace_back();
      thread.tid = pid;
      thread.waits_on = WaitsOn{.kind = "process", .target = "pid:7", .detail = "a pid 7 (x)"};
    }
    job.facts.push_back({.rank = std::nullopt,
                         .pid = 7,
                         .kind = "blocked-on",
                         .fields = {{"host", std::string(host)},
                                    {"tid", std::int64_t{7}},
                                    {"object", std::string("pipe:[5]")},
                                    {"enders", std::vector<std::string>{"1", "7"}}}});
  }
  return job;
}

TEST(HostPids, NoTwoProcessesHaveOneNumber) {
  JobModel job = two_containers();
  const HostPids pids = HostPids::number(job);
  std::set<pid_t> seen;
  for (const Process& process : job.observations[0].processes) {
    EXPECT_TRUE(seen.insert(process.pid).second);
    EXPECT_EQ(pids.host_of(process.pid), process.host);
  }
  const auto& all = job.observations[0].processes;
  EXPECT_EQ(all[1].ppid, all[0].pid);
  EXPECT_EQ(all[3].ppid, all[2].pid);
  EXPECT_EQ(all[2].threads[0].waits_on->target, "pid:" + std::to_string(all[3].pid));
  EXPECT_EQ(*job.facts[1].pid, all[3].pid);
  EXPECT_EQ(job.facts[1].list("enders"),
            (std::vector<std::string>{std::to_string(all[2].pid), std::to_string(all[3].pid)}));
  EXPECT_NE(job.facts[0].text("object"), job.facts[1].text("object"));
}

TEST(HostPids, AfterwardsAllIsAsItWas) {
  JobModel job = two_containers();
  const HostPids pids = HostPids::number(job);
  pids.restore(job);
  const JobModel before = two_containers();
  for (std::size_t i = 0; i < 4; ++i) {
    const Process& now = job.observations[0].processes[i];
    const Process& then = before.observations[0].processes[i];
    EXPECT_EQ(now.pid, then.pid);
    EXPECT_EQ(now.ppid, then.ppid);
    EXPECT_EQ(now.threads[0].tid, then.threads[0].tid);
    EXPECT_EQ(now.threads[0].waits_on->target, then.threads[0].waits_on->target);
    EXPECT_EQ(now.threads[0].waits_on->detail, then.threads[0].waits_on->detail);
  }
  EXPECT_EQ(job.facts[1].fields, before.facts[1].fields);
}

TEST(HostPids, SentencesHaveTheHostsNumbers) {
  JobModel job = two_containers();
  const HostPids pids = HostPids::number(job);
  const pid_t b7 = job.observations[0].processes[3].pid;
  EXPECT_EQ(pids.said("process " + std::to_string(b7) + " waits"), "process 7 on b waits");
  EXPECT_EQ(pids.said("run `kill -9 " + std::to_string(b7) + "` now"), "run `kill -9 7` on b now");
  EXPECT_EQ(pids.said("4096 bytes at train.py:7"), "4096 bytes at train.py:7");
}

TEST(HostPids, OneHostIsLeftAlone) {
  JobModel job = two_containers();
  for (Process& process : job.observations[0].processes) {
    process.host = "a";
  }
  EXPECT_TRUE(HostPids::number(job).empty());
  EXPECT_EQ(job.observations[0].processes[1].pid, 7);
}

TEST(HostPids, AFactWithoutAHostAccusesNobodysProcess) {
  JobModel job = two_containers();
  job.facts.push_back({.rank = std::nullopt, .pid = 7, .kind = "fork", .fields = {}});
  job.facts.push_back({.rank = 1, .pid = 7, .kind = "fork", .fields = {}});
  const HostPids pids = HostPids::number(job);
  EXPECT_FALSE(job.facts[2].pid.has_value());
  EXPECT_EQ(pids.host_of(*job.facts[3].pid), "b");
}

TEST(HostPids, ARankOnTwoHostsHasNone) {
  JobModel job = two_containers();
  EXPECT_EQ(hosts_of_ranks(job), (std::map<Rank, std::string>{{0, "a"}, {1, "b"}}));
  job.observations[0].processes[3].rank = 0;
  EXPECT_TRUE(hosts_of_ranks(job).empty());
}

TEST(HostPids, InitStaysTheParentOfOrphans) {
  JobModel job = two_containers();
  std::erase_if(job.observations[0].processes, [](const Process& one) { return one.pid == 1; });
  const HostPids pids = HostPids::number(job);
  EXPECT_EQ(job.observations[0].processes[0].ppid, 1);
}

}  // namespace
}  // namespace ddpdoctor::model
