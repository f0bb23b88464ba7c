// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/kept_locks.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

/// Process 7 waits for a lock that process 5 took; process 9 has the file open now.
JobModel waits_for(std::string target, bool kept) {
  Thread thread;
  thread.waits_on = WaitsOn{.kind = "file-lock",
                            .target = std::move(target),
                            .detail = "/tmp/x.lock, held by rank 0 (pid 5)"};
  Process process;
  process.pid = 7;
  process.threads.push_back(std::move(thread));
  JobModel job;
  job.observations.push_back({.time = 1, .processes = {std::move(process)}});
  std::map<std::string, FactValue> fields = {{"waiting_pid", std::int64_t{7}},
                                             {"holder_pid", std::int64_t{5}}};
  if (kept) {
    fields.emplace("heir_pid", std::int64_t{9});
  }
  job.facts.push_back({.rank = 1, .pid = 7, .kind = "file-lock", .fields = std::move(fields)});
  name_heirs_of_locks(job);
  return job;
}

const WaitsOn& wait_in(const JobModel& job) {
  return *job.observations.back().processes.front().threads.front().waits_on;
}

TEST(KeptLocks, TheNewestFactNamesTheProcessThatKeepsALock) {
  const JobModel job = waits_for("pid:5", true);
  EXPECT_EQ(wait_in(job).target, "pid:9");
  EXPECT_EQ(wait_in(job).detail, "/tmp/x.lock, held by pid:9");
}

TEST(KeptLocks, OtherWaitsAreNotChanged) {
  EXPECT_EQ(wait_in(waits_for("pid:5", false)).target, "pid:5");
  EXPECT_EQ(wait_in(waits_for("pid:6", true)).target, "pid:6");
}

}  // namespace
}  // namespace ddpdoctor::model
