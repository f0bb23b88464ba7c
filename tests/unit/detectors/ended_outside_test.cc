// SPDX-License-Identifier: Apache-2.0
// dead-rank: what kernels, schedulers and launchers say about an end.
#include <fmt/format.h>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

Findings dead_in(const std::string& log) {
  model::JobModel job;
  job.logs.push_back({.rank = {}, .text = log});
  return asked("dead-rank", job);
}

TEST(DeadRank, ReadsTheKernelsKillsOfAllVersions) {
  for (const char* line :
       {"[1.2] Memory cgroup out of memory: Killed process 4105 (python) total-vm:9kB",
        "[1.2] Out of memory: Kill process 4105 (python) score 912 or sacrifice child",
        "[1.2] Killed process 4105 (python) total-vm:9kB, anon-rss:8kB",
        "[1.2] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,"
        "oom_memcg=/k,task_memcg=/k,task=python,pid=4105,uid=0",
        "System OOM encountered, victim process: python, pid: 4105"}) {
    const auto findings = dead_in(std::string(line) + "\n");
    ASSERT_EQ(findings.size(), 1U) << line;
    EXPECT_NE(findings[0].summary.find("process 4105 (python)"), std::string::npos);
  }
}

TEST(DeadRank, ReadsWhatSchedulersEnd) {
  const auto said_of = [](const std::string& log) {
    const auto findings = dead_in(log);
    return findings.empty()
               ? std::string()
               : fmt::format("{} {}", confidence_name(findings[0].confidence), findings[0].summary);
  };
  EXPECT_EQ(
      said_of("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7123.0. Some of your "
              "processes may have been killed by the cgroup out-of-memory handler.\n"),
      "likely processes were killed at the memory limit of Slurm step 7123.0");
  EXPECT_EQ(said_of("slurmstepd: error: *** STEP 7123.0 ON node7 CANCELLED AT 2026-01-02T03:04:05 "
                    "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"),
            "likely a node (node7) failed; Slurm ended Slurm step 7123.0");
  EXPECT_EQ(said_of("slurmstepd: error: *** JOB 7123 ON node7 CANCELLED AT 2026-01-02T03:04:05 DUE "
                    "TO TIME LIMIT ***\n"),
            "possible Slurm ended Slurm job 7123 at its time limit");
  EXPECT_EQ(said_of("Name:         trainer-1\nNamespace:    ml\n    Last State:     Terminated\n"
                    "      Reason:       OOMKilled\n      Exit Code:    137\n"),
            "possible processes were killed at the memory limit of pod trainer-1");
  EXPECT_EQ(said_of("NAME        READY   STATUS      RESTARTS   AGE\n"
                    "trainer-0   1/1     Running     0          5m\n"
                    "trainer-1   0/1     OOMKilled   0          5m\n"),
            "possible processes were killed at the memory limit of pod trainer-1");
  EXPECT_EQ(said_of("INFO cache: Evicted 12/40 blocks, reason: capacity\n"), "");
  EXPECT_EQ(said_of("      \"OOMKilled\": false,\n      Reason:       Completed\n"), "");
}

}  // namespace
}  // namespace ddpdoctor::detectors
