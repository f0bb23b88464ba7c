// SPDX-License-Identifier: Apache-2.0
// Finds the job on a node when no pid is given.
#include <set>

#include "collector/sources/processes/job_choice.h"
#include "tests/unit/sources/job_table.h"

namespace ddpdoctor::sources {
namespace {

/// Processes 20-29 have libtorch mapped.
std::optional<bool> has_torch(pid_t pid) {
  return pid - Table::kBase >= 20 && pid - Table::kBase < 30;
}

std::vector<JobHere> here(const Table& table, const JobFilter& filter = {}) {
  return jobs_here(filter, table.rows(), has_torch);
}

Variables in_slurm(Variables variables, const std::string& job) {
  variables["SLURM_JOB_ID"] = job;
  variables["SLURM_PROCID"] = "0";
  variables["SLURM_NTASKS"] = "2";
  return variables;
}

TEST(JobsHere, RanksGoBeforeLaunchersAndThoseBeforeProgramsThatUseTorch) {
  Table table;
  table.add(5, 0, {"-bash"}).add(20, 5, {"python", "notebook.py"});
  ASSERT_EQ(here(table).size(), 1U);
  table.add(10, 5, kTorchrun);
  ASSERT_EQ(here(table).size(), 1U);
  EXPECT_EQ(here(table)[0].pid, Table::kBase + 10);
  table.add(21, 10, kTrain, torchrun_rank(0));
  ASSERT_EQ(here(table).size(), 1U);
  EXPECT_EQ(here(table)[0].pid, Table::kBase + 10);
  EXPECT_EQ(here(table)[0].ranks, 1U);
}

TEST(JobsHere, ABatchScriptsSrunIsNoSecondJob) {
  Table table;
  table.add(4, 0, {"bash", "job.sh"}, in_slurm({}, "7"))
      .add(6, 4, {"srun", "torchrun"}, in_slurm({}, "7"))
      .add(10, 0, kTorchrun, in_slurm({}, "7"))
      .add(21, 10, kTrain, in_slurm(torchrun_rank(0), "7"))
      .add(22, 10, kTrain, in_slurm(torchrun_rank(1), "7"));
  const auto jobs = here(table, {.variable = "SLURM_JOB_ID=7", .text = {}, .except = {}});
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].pid, Table::kBase + 10);
  EXPECT_EQ(jobs[0].ranks, 2U);
  EXPECT_TRUE(here(table, {.variable = "SLURM_JOB_ID=8", .text = {}, .except = {}}).empty());
}

TEST(JobsHere, TwoJobsAreToldApartByATextOfEither) {
  Variables other = torchrun_rank(0);
  other["MASTER_PORT"] = "31000";
  Table table;
  table.add(21, 0, {"python", "one.py"}, torchrun_rank(0)).add(22, 0, {"python", "two.py"}, other);
  EXPECT_EQ(here(table).size(), 2U);
  ASSERT_EQ(here(table, {.variable = {}, .text = "two.py", .except = {}}).size(), 1U);
  ASSERT_EQ(here(table, {.variable = {}, .text = ":31000", .except = {}}).size(), 1U);
  EXPECT_TRUE(here(table, {.variable = {}, .text = "three.py", .except = {}}).empty());
}

TEST(JobsHere, TheLookItselfIsNobodysJob) {
  Table table;
  table.add(6, 0, {"srun", "ddpdoctor", "capture", "--session", "abcd"});
  EXPECT_EQ(here(table).size(), 1U);
  EXPECT_TRUE(here(table, {.variable = {}, .text = {}, .except = "abcd"}).empty());
}

}  // namespace
}  // namespace ddpdoctor::sources
