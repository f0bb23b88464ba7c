// SPDX-License-Identifier: Apache-2.0
// What `attach PID` reads: the pid itself, the only job below it, or nothing.
#include "collector/sources/processes/job_choice.h"

#include <set>

#include "tests/unit/sources/job_table.h"

namespace ddpdoctor::sources {
namespace {

const std::vector<std::string> kShellScript{"bash", "start.sh"};
const std::vector<std::string> kTerminal{"-bash"};

/// Processes 20-29 have libtorch mapped.
std::optional<bool> has_torch(pid_t pid) {
  return pid - Table::kBase >= 20 && pid - Table::kBase < 30;
}

base::Result<JobChoice> choose(const Table& table, pid_t pid) {
  return choose_job(Table::kBase + pid, table.rows(), has_torch);
}

Table two_ranks() {
  Table table;
  return table.add(5, 0, kTerminal)
      .add(10, 5, kTorchrun)
      .add(20, 10, kTrain, torchrun_rank(0))
      .add(21, 10, kTrain, torchrun_rank(1));
}

TEST(JobChoice, AnyProcessOfAJobNamesIt) {
  for (const pid_t pid : {10, 20, 21}) {
    const auto choice = choose(two_ranks(), pid);
    ASSERT_TRUE(choice.has_value()) << pid;
    EXPECT_EQ(choice->pid, Table::kBase + pid);
    EXPECT_TRUE(choice->note.empty());
  }
}

TEST(JobChoice, ATerminalNamesTheOneJobBelowIt) {
  const auto choice = choose(two_ranks().add(30, 5, {"vim", "train.py"}), 5);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->pid, Table::kBase + 10);
  EXPECT_NE(choice->note.find("below it runs one"), std::string::npos);
}

TEST(JobChoice, AScriptIsTheLauncherOfWhatItStarted) {
  const auto choice = choose(Table()
                                 .add(5, 0, kShellScript)
                                 .add(20, 5, kTrain, torchrun_rank(0))
                                 .add(21, 5, kTrain, torchrun_rank(1)),
                             5);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->pid, Table::kBase + 5);
  EXPECT_TRUE(choice->note.empty());
}

TEST(JobChoice, TwoLaunchersOfOneJobAreOneJob) {
  const auto choice = choose(Table()
                                 .add(5, 0, kShellScript)
                                 .add(10, 5, kTorchrun)
                                 .add(11, 5, kTorchrun)
                                 .add(20, 10, kTrain, torchrun_rank(0))
                                 .add(21, 11, kTrain, torchrun_rank(1)),
                             5);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->pid, Table::kBase + 5);
}

TEST(JobChoice, ADaemonBesideTheRanksOfAScriptIsNoJob) {
  const auto choice = choose(Table()
                                 .add(5, 0, kShellScript)
                                 .add(20, 5, kTrain, torchrun_rank(0))
                                 .add(21, 20, kTrain, torchrun_rank(1))
                                 .add(12, 5, {"orted", "--hnp", "--set-sid"}),
                             5);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->pid, Table::kBase + 5);
}

TEST(JobChoice, AScriptThatStartsOneJobInPartsIsTheJob) {
  const auto choice = choose(Table()
                                 .add(5, 0, kShellScript)
                                 .add(20, 5, kTrain, torchrun_rank(0))
                                 .add(21, 5, kTrain, torchrun_rank(1, 1, "29507")),
                             5);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->pid, Table::kBase + 5);
}

TEST(JobChoice, PythonRanksOfMpiNeedNoTorch) {
  const auto rank = [](int number) {
    return std::map<std::string, std::string>{{"OMPI_COMM_WORLD_RANK", std::to_string(number)},
                                              {"OMPI_COMM_WORLD_SIZE", "2"}};
  };
  const auto choice = choose(Table()
                                 .add(5, 0, kShellScript)
                                 .add(10, 5, {"mpirun", "-n", "2", "python", "train.py"})
                                 .add(30, 10, {"python", "train.py"}, rank(0))
                                 .add(31, 10, {"python", "train.py"}, rank(1)),
                             5);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->pid, Table::kBase + 5);
}

TEST(JobChoice, OfSeveralJobsOneIsAskedFor) {
  const auto choice = choose(
      two_ranks().add(11, 5, kTorchrun).add(22, 11, kTrain, torchrun_rank(0, 1, "29507")), 5);
  ASSERT_FALSE(choice.has_value());
  EXPECT_NE(choice.error().what.find("2 jobs run below pid"), std::string::npos);
  for (const pid_t launcher : {10, 11}) {
    EXPECT_NE(choice.error().hint.find(fmt::format("attach {}`", Table::kBase + launcher)),
              std::string::npos);
  }
}

TEST(JobChoice, AFirstProcessThatMayNotBeReadStandsAboveTheJobsBelowIt) {
  const auto unreadable = [](pid_t pid) -> std::optional<bool> {
    return pid == Table::kBase + 1 ? std::nullopt : has_torch(pid);
  };
  const Table one = two_ranks().add(1, 0, {"/sbin/init"}).add(5, 1, kTerminal);
  const auto only = choose_job(Table::kBase + 1, one.rows(), unreadable);
  ASSERT_TRUE(only.has_value());
  EXPECT_EQ(only->pid, Table::kBase + 10);
  Table two = one;
  two.add(11, 1, {"/opt/venv/bin/torchrun", "/home/u/other.py"});
  two.add(22, 11, kTrain, torchrun_rank(0, 1, "29507"));
  const auto several = choose_job(Table::kBase + 1, two.rows(), unreadable);
  ASSERT_FALSE(several.has_value());
  EXPECT_NE(several.error().what.find("2 jobs run below pid"), std::string::npos);
  EXPECT_NE(several.error().hint.find("(torchrun other.py, 1 rank)"), std::string::npos)
      << several.error().hint;
  const Table none = Table().add(1, 0, {"/sbin/init"}).add(5, 1, kTerminal);
  EXPECT_EQ(choose_job(Table::kBase + 1, none.rows(), unreadable).value().pid, Table::kBase + 1);
}

TEST(JobChoice, ASleepIsNoJobAndTheJobsAreNamed) {
  const auto choice = choose(two_ranks().add(31, 5, {"sleep", "100"}), 31);
  ASSERT_FALSE(choice.has_value());
  EXPECT_NE(choice.error().what.find("(sleep 100) is not part of a PyTorch job"),
            std::string::npos);
  EXPECT_NE(choice.error().hint.find(fmt::format("attach {}`", Table::kBase + 10)),
            std::string::npos);
  EXPECT_NE(choice.error().hint.find("2 ranks"), std::string::npos);
}

TEST(JobChoice, AShellWithoutAJobIsNone) {
  const auto choice =
      choose(Table().add(5, 0, kTerminal).add(6, 5, {"python", "-m", "http.server"}), 5);
  ASSERT_FALSE(choice.has_value());
  EXPECT_NE(choice.error().hint.find("no PyTorch job was found"), std::string::npos);
}

TEST(JobChoice, APlainTrainingScriptIsLookedAt) {
  const Table table = Table().add(5, 0, kTerminal).add(20, 5, {"python", "train.py"});
  EXPECT_EQ(choose(table, 20).value().pid, Table::kBase + 20);
  EXPECT_EQ(choose(table, 5).value().pid, Table::kBase + 20);
  // A process that has not imported torch yet, and a compiled program that links it.
  EXPECT_TRUE(choose(Table().add(6, 0, {"python", "train.py"}), 6).has_value());
  EXPECT_TRUE(choose(Table().add(25, 0, {"./trainer"}), 25).has_value());
}

TEST(JobChoice, AProcessThatMayNotBeReadIsLeftToWhoLooks) {
  const auto unreadable = [](pid_t) { return std::optional<bool>(); };
  const Table table = Table().add(7, 0, {"./trainer"});
  EXPECT_TRUE(choose_job(Table::kBase + 7, table.rows(), unreadable).has_value());
  EXPECT_TRUE(choose_job(Table::kBase + 99, table.rows(), unreadable).has_value());
}

Variables worker_of(const char* program) {
  return {{"RAY_JOB_ID", program},
          {"RAY_RAYLET_PID", std::to_string(Table::kBase + 15)},
          {"MASTER_PORT", program}};
}

/// A program (10) that started a cluster of its own: its raylet (15), two of its workers, one
/// worker of another program and one of none.
Table cluster() {
  return Table()
      .add(10, 0, {"python", "driver.py"})
      .add(15, 10, {"/opt/ray/raylet"})
      .add(20, 15, {"ray::Trainer.train"}, worker_of("01000000"))
      .add(21, 15, {"ray::Trainer.train"}, worker_of("01000000"))
      .add(22, 15, {"ray::Other.train"}, worker_of("02000000"))
      .add(30, 15, {"ray::DashboardAgent"});
}

TEST(JobChoice, WorkersOfOneProgramOfRayAreOneJob) {
  const auto both = choose(cluster(), 15);
  ASSERT_FALSE(both.has_value());
  EXPECT_NE(both.error().what.find("2 jobs run below"), std::string::npos) << both.error().what;
  const auto one = choose(Table()
                              .add(15, 0, {"/opt/ray/raylet"})
                              .add(20, 15, {"ray::Trainer.train"}, worker_of("01000000"))
                              .add(21, 15, {"ray::Trainer.train"}, worker_of("01000000")),
                          15);
  ASSERT_TRUE(one.has_value()) << one.error().what;
}

TEST(JobChoice, AWorkerOfRayLeadsToTheOthersOfItsProgram) {
  const JobTree job = cluster().find(20);
  std::set<pid_t> seen;
  for (const JobProcess& process : job.processes) {
    seen.insert(process.row.pid - Table::kBase);
  }
  EXPECT_EQ(seen, (std::set<pid_t>{10, 15, 20, 21, 30}));
}

}  // namespace
}  // namespace ddpdoctor::sources
