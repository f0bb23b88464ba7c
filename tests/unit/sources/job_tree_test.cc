// SPDX-License-Identifier: Apache-2.0
// Trees made by hand show every way a job is started; trees of real processes show that /proc says
// what we think.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/sources/children.h"

namespace ddpdoctor::sources {
namespace {

using Variables = std::map<std::string, std::string>;

/// A process table written by hand. Pids are far above those the kernel gives, so that nothing real
/// is read.
class Table {
 public:
  Table& add(pid_t pid, pid_t parent, std::vector<std::string> command,
             Variables environment = {}) {
    ProcessRow row;
    row.pid = kBase + pid;
    row.ppid = parent == 0 ? 1 : kBase + parent;
    row.comm = command.empty() ? "python" : command.front().substr(command.front().rfind('/') + 1);
    row.state = 'S';
    row.command = std::move(command);
    row.start_ticks = static_cast<std::uint64_t>(pid);
    row.session = kBase;
    row.environment = std::move(environment);
    row.complete = true;
    rows_[row.pid] = row;
    last_ = row.pid;
    return *this;
  }
  /// Changes the process added last.
  ProcessRow& last() {
    return rows_.at(last_);
  }

  [[nodiscard]] JobTree find(pid_t pid, bool whole_tree = true) const {
    auto job = find_job(kBase + pid, whole_tree, rows_);
    EXPECT_TRUE(job.has_value());
    return job.value_or(JobTree{});
  }

  static constexpr pid_t kBase = 1 << 28;

 private:
  ProcessTable rows_;
  pid_t last_ = 0;
};

/// "10 launcher; 11 rank 0; 12 worker 0": pids of the table, roles and ranks in the tree's order.
std::string shape(const JobTree& job) {
  std::string text;
  for (const JobProcess& process : job.processes) {
    constexpr std::array<std::string_view, 6> kNames{"launcher", "rank", "worker",
                                                     "tracker",  "shm",  "other"};
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", process.row.pid - Table::kBase,
                        kNames.at(static_cast<std::size_t>(process.role)));
    text += process.rank           ? fmt::format(" {}", *process.rank)
            : process.guessed_rank ? fmt::format(" ?{}", *process.guessed_rank)
                                   : "";
  }
  return text;
}

Variables torchrun_rank(int rank, int world = 2, const std::string& port = "29500") {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(world)},
          {"GROUP_WORLD_SIZE", "1"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", port},
          {"TORCHELASTIC_RUN_ID", "none"}};
}

const std::vector<std::string> kTorchrun{"python", "/bin/torchrun", "train.py"};
const std::vector<std::string> kTrain{"python", "-u", "train.py"};
const std::vector<std::string> kSpawnMain{
    "python", "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)",
    "--multiprocessing-fork"};

Table torchrun_below_shell() {
  Table table;
  table.add(5, 0, {"bash", "cmd.sh"}).add(10, 5, kTorchrun);
  table.add(11, 10, kTrain, torchrun_rank(0)).add(12, 10, kTrain, torchrun_rank(1));
  table.add(13, 11, kTrain, torchrun_rank(0)).last().comm = "pt_data_worker";
  table.add(14, 12, kTrain, torchrun_rank(1)).last().comm = "pt_data_worker";
  table.add(15, 11, {"wandb-core"}, torchrun_rank(0));
  return table;
}

TEST(JobTree, EveryProcessOfATorchrunJobLeadsToTheWholeJob) {
  const Table table = torchrun_below_shell();
  const std::string expected =
      "10 launcher; 11 rank 0; 13 worker 0; 15 other 0; 12 rank 1; 14 worker 1";
  for (const pid_t pid : {10, 11, 12, 13, 14, 15}) {
    const JobTree job = table.find(pid);
    EXPECT_EQ(shape(job), expected) << "from " << pid;
    EXPECT_EQ(job.launcher, Table::kBase + 10);
    EXPECT_EQ(job.world_size, 2);
    EXPECT_EQ(job.ranks_here, (std::vector<int>{0, 1}));
    EXPECT_TRUE(job.notes.empty());
  }
}

TEST(JobTree, AShellAboveTheLauncherComesFirstAndIsNoLauncher) {
  const JobTree job = torchrun_below_shell().find(5);
  EXPECT_EQ(shape(job),
            "5 other; 10 launcher; 11 rank 0; 13 worker 0; 15 other 0; 12 rank 1; 14 worker 1");
  EXPECT_EQ(job.launcher, Table::kBase + 10);
}

TEST(JobTree, OneProcessIsOneProcess) {
  EXPECT_EQ(shape(torchrun_below_shell().find(12, false)), "12 rank 1");
}

TEST(JobTree, StopsBelowTestHarnessesShellsAndTerminals) {
  for (const auto& above : std::vector<std::vector<std::string>>{{"python", "-m", "pytest"},
                                                                 {"tmux: server"},
                                                                 {"-bash"},
                                                                 {"sshd: me"},
                                                                 {"ddpdoctor", "run"},
                                                                 {"Runner.Worker"},
                                                                 {"python", "harness.py"}}) {
    Table table;
    table.add(3, 0, above)
        .add(4, 3, {"vim", "train.py"})
        .add(10, 3, kTorchrun)
        .add(11, 10, kTrain, torchrun_rank(0))
        .add(12, 10, kTrain, torchrun_rank(1));
    EXPECT_EQ(shape(table.find(12)), "10 launcher; 11 rank 0; 12 rank 1") << above.front();
  }
}

TEST(JobTree, LaunchersOfLaunchersBelongToTheJob) {
  Table table;
  table.add(9, 0, {"python", "/bin/deepspeed", "train.py"})
      .add(10, 9, {"python", "-m", "deepspeed.launcher.launch", "train.py"});
  table.add(11, 10, kTrain, torchrun_rank(0)).add(12, 10, kTrain, torchrun_rank(1));
  EXPECT_EQ(shape(table.find(11)), "9 launcher; 10 launcher; 11 rank 0; 12 rank 1");
}

TEST(JobTree, ChildrenOfSpawnAreRanksInOrderOfStart) {
  Table table;
  table.add(10, 0, kTrain)
      .add(11, 10, {"python", "-c", "from multiprocessing.resource_tracker import main;main(3)"});
  table.add(12, 10, kSpawnMain).add(13, 10, kSpawnMain);
  table.add(14, 12, kSpawnMain).last().comm = "pt_data_worker";
  for (const pid_t pid : {10, 11, 12, 13, 14}) {
    const JobTree job = table.find(pid);
    EXPECT_EQ(shape(job), "10 launcher; 11 tracker; 12 rank ?0; 14 worker; 13 rank ?1")
        << "from " << pid;
    EXPECT_FALSE(job.world_size);
  }
}

TEST(JobTree, ForkedRanksAreToldByTheirUnchangedMemoryMap) {
  Table table;
  table.add(10, 0, kTrain).last().arguments_at = 4711;
  table.add(11, 10, kTrain).last().arguments_at = 4711;
  table.add(12, 10, kTrain).last().arguments_at = 4711;
  EXPECT_EQ(shape(table.find(12)), "10 launcher; 11 rank ?0; 12 rank ?1");
  Table separate;
  separate.add(10, 0, kTrain).last().arguments_at = 4711;
  separate.add(11, 10, kTrain).last().arguments_at = 815;  // the same command, but started anew
  EXPECT_EQ(shape(separate.find(11)), "11 other");
}

TEST(JobTree, RanksStartedByHandFindEachOther) {
  Table table;
  table.add(3, 0, {"-bash"});
  table.add(11, 3, kTrain,
            {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}});
  table.add(12, 3, kTrain,
            {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}});
  table.add(13, 3, kTrain,
            {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "2"}});
  EXPECT_EQ(shape(table.find(12)), "12 rank 1; 11 rank 0");
}

TEST(JobTree, AShellLoopThatStartsRanksIsTheTop) {
  Table table;
  table.add(5, 0, {"bash", "loop.sh"});
  table.add(11, 5, kTrain, torchrun_rank(0))
      .add(12, 5, kTrain, torchrun_rank(1))
      .add(20, 5, kTrain, torchrun_rank(0, 1, "7"));
  const JobTree job = table.find(12);
  EXPECT_EQ(shape(job), "5 other; 11 rank 0; 12 rank 1");
  EXPECT_EQ(job.launcher, Table::kBase + 5);
}

TEST(JobTree, OfTwoJobsBelowAShellTheOneOfThePidIsTakenElseBothWithANote) {
  Table table;
  table.add(5, 0, {"bash", "two.sh"}).add(10, 5, kTorchrun).add(20, 5, kTorchrun);
  table.add(11, 10, kTrain, torchrun_rank(0)).add(12, 10, kTrain, torchrun_rank(1));
  table.add(21, 20, kTrain, torchrun_rank(0, 2, "29501"))
      .add(22, 20, kTrain, torchrun_rank(1, 2, "29501"));
  EXPECT_EQ(shape(table.find(21)), "20 launcher; 21 rank 0; 22 rank 1");
  const JobTree both = table.find(5);
  EXPECT_EQ(both.processes.size(), 7U);
  ASSERT_EQ(both.notes.size(), 1U);
  EXPECT_NE(both.notes[0].find("2 jobs stand below"), std::string::npos) << both.notes[0];
}

TEST(JobTree, OrphansOfADeadLauncherAreFoundByTheirRendezvous) {
  Table table;
  table.add(11, 0, kTrain, torchrun_rank(0)).add(12, 0, kTrain, torchrun_rank(1));
  EXPECT_EQ(shape(table.find(12)), "12 rank 1; 11 rank 0");
}

TEST(JobTree, ALeftoverOfAnEarlierStartIsNotedNotTaken) {
  Table table;
  table.add(2, 0, kTrain, torchrun_rank(0)).last().session = 99;
  table.add(10, 0, kTorchrun).add(11, 10, kTrain, torchrun_rank(0));
  const JobTree job = table.find(11);
  EXPECT_EQ(shape(job), "10 launcher; 11 rank 0");
  ASSERT_EQ(job.notes.size(), 2U);
  EXPECT_NE(job.notes[0].find("also has RANK=0"), std::string::npos);
  EXPECT_EQ(job.notes[1], "rank 1 should run on this machine and has no process");
}

TEST(JobTree, TwoNodesOnOneMachineAreOneJob) {
  Table table;
  table.add(10, 0, kTorchrun).add(20, 0, kTorchrun);
  for (int rank = 0; rank < 4; ++rank) {
    Variables variables = torchrun_rank(rank, 4);
    variables["LOCAL_RANK"] = std::to_string(rank % 2);
    variables["LOCAL_WORLD_SIZE"] = "2";
    variables["GROUP_WORLD_SIZE"] = "2";
    table.add(rank < 2 ? 11 + rank : 19 + rank + 1, rank < 2 ? 10 : 20, kTrain, variables);
  }
  const JobTree one = table.find(11);
  EXPECT_EQ(shape(one), "10 launcher; 11 rank 0; 12 rank 1");
  EXPECT_EQ(one.nodes, 2);
  EXPECT_EQ(one.local_world_size, 2);
  EXPECT_EQ(one.ranks_here, (std::vector<int>{0, 1}));
  ASSERT_EQ(one.notes.size(), 1U);
  EXPECT_EQ(one.notes[0],
            "2 of 4 ranks run on this machine (0-1); the others are on other machines and were not "
            "observed");
}

TEST(JobTree, BatchSystemsLabelDoesNotMakeALauncherARank) {
  Table table;
  table.add(4, 0, {"bash", "job.sbatch"}, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}});
  table.add(10, 4, kTorchrun, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"RANK", "0"}});
  Variables variables = torchrun_rank(1);
  variables["SLURM_PROCID"] = "0";
  table.add(11, 10, kTrain, torchrun_rank(0)).add(12, 10, kTrain, variables);
  EXPECT_EQ(shape(table.find(12)), "10 launcher; 11 rank 0; 12 rank 1");
}

TEST(JobTree, MpiRanksAreRanks) {
  Table table;
  table.add(10, 0, {"mpirun", "-n", "2", "./solver"});
  for (int rank = 0; rank < 2; ++rank) {
    table.add(11 + rank, 10, {"./solver"},
              {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
               {"OMPI_COMM_WORLD_SIZE", "2"},
               {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank)}});
  }
  const JobTree job = table.find(12);
  EXPECT_EQ(shape(job), "10 launcher; 11 rank 0; 12 rank 1");
  EXPECT_EQ(job.world_size, 2);
}

TEST(JobTree, BelowAWrapperTheInterpreterIsTheRank) {
  Table table;
  table.add(10, 0, kTorchrun)
      .add(11, 10, {"bash", "wrap.sh"}, torchrun_rank(0))
      .add(12, 11, {"numactl", "python", "train.py"}, torchrun_rank(0))
      .add(13, 12, kTrain, torchrun_rank(0));
  table.add(14, 10, {"./profiler"}, torchrun_rank(1)).add(15, 14, kTrain, torchrun_rank(1));
  for (const pid_t pid : {11, 13, 15}) {
    EXPECT_EQ(shape(table.find(pid)),
              "10 launcher; 11 other; 12 other; 13 rank 0; 14 other 1; 15 rank 1")
        << "from " << pid;
  }
}

TEST(JobTree, LightningsRankZeroStartsTheOthers) {
  Table table;
  table.add(10, 0, kTrain)
      .add(11, 10, kTrain,
           {{"LOCAL_RANK", "1"},
            {"NODE_RANK", "0"},
            {"WORLD_SIZE", "2"},
            {"MASTER_ADDR", "h"},
            {"MASTER_PORT", "1"}});
  EXPECT_EQ(shape(table.find(11)), "10 rank 0; 11 rank 1");
}

TEST(JobTree, AZombieKeepsItsPlaceAmongTheRanks) {
  Table table;
  table.add(10, 0, kTorchrun)
      .add(11, 10, kTrain, torchrun_rank(0, 3))
      .add(12, 10, {})
      .last()
      .state = 'Z';
  table.add(13, 10, kTrain, torchrun_rank(2, 3)).add(14, 13, {}).last().state = 'Z';
  table.last().comm = "pt_data_worker";
  EXPECT_EQ(shape(table.find(10)), "10 launcher; 11 rank 0; 12 rank 1; 13 rank 2; 14 worker 2");
}

TEST(JobTree, AForkServersChildrenServeTheirRank) {
  const std::vector<std::string> server{"python", "-c",
                                        "from multiprocessing.forkserver import main; main(1)"};
  Table table;
  table.add(10, 0, kTorchrun)
      .add(11, 10, kTrain, torchrun_rank(0, 1))
      .add(12, 11, server, torchrun_rank(0, 1))
      .add(13, 12, server, torchrun_rank(0, 1));
  EXPECT_EQ(shape(table.find(13)), "10 launcher; 11 rank 0; 12 other 0; 13 worker 0");
}

TEST(JobTree, ALoopOfParentsEnds) {
  Table table;
  table.add(10, 11, kSpawnMain).add(11, 10, kSpawnMain);
  EXPECT_FALSE(table.find(10).processes.empty());
}

TEST(JobTree, AHugeWorldSizeAllocatesNothing) {
  Table table;
  table.add(11, 0, kTrain, {{"RANK", "1"}, {"WORLD_SIZE", "16000000"}, {"MASTER_PORT", "1"}});
  EXPECT_TRUE(table.find(11).ranks_here.empty());
}

TEST(FindJob, NoSuchProcessIsAnErrorThatSaysWhatToDo) {
  const auto job = find_job((1 << 22) + 5, true);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().what, fmt::format("there is no process {}", (1 << 22) + 5));
  EXPECT_FALSE(job.error().hint.empty());
  EXPECT_FALSE(find_job(0, true));
  EXPECT_FALSE(find_job(-1, true));
  EXPECT_FALSE(find_job(::getpid(), true));
}

/// Real: a shell, "torchrun" below it, two ranks, one of them with a forked worker.
TEST(FindJob, FindsARealTreeFromItsShellAndFromItsWorker) {
  if (std::system("python3 -c pass") != 0) {
    GTEST_SKIP() << "no python3";
  }
  const Folder folder;
  write_file(folder.file("torchrun"), R"(import os, subprocess, sys, time
for r in range(2):
    subprocess.Popen([sys.executable, "train.py"], env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="4242"))
time.sleep(1000)
)");
  write_file(folder.file("train.py"), R"(import os, time
if os.environ["RANK"] == "1" and os.fork() == 0:
    open("worker", "w").write(str(os.getpid()))
time.sleep(1000)
)");
  write_file(folder.file("cmd.sh"), "python3 torchrun; true\n");
  Child shell([&folder] {
    [[maybe_unused]] const int moved = ::chdir(folder.path().c_str());
    run({"sh", "cmd.sh"});
  });
  JobTree job;
  ASSERT_TRUE(eventually([&] {
    job = find_job(shell.pid(), true).value_or(JobTree{});
    return job.processes.size() == 5 && read_file(folder.file("worker")).value_or("").size() > 0;
  })) << job.processes.size();
  EXPECT_EQ(job.processes[0].row.pid, shell.pid());
  EXPECT_EQ(job.processes[1].role, JobRole::kLauncher);
  EXPECT_EQ(job.launcher, job.processes[1].row.pid);
  EXPECT_EQ(job.world_size, 2);
  const pid_t worker = number<pid_t>(*read_file(folder.file("worker"))).value_or(0);
  const JobTree below = find_job(worker, true).value_or(JobTree{});
  ASSERT_EQ(below.processes.size(), 4U);
  EXPECT_EQ(below.processes[0].role, JobRole::kLauncher);
  ASSERT_NE(below.find(worker), nullptr);
  EXPECT_EQ(below.find(worker)->role, JobRole::kDataLoaderWorker);
  EXPECT_EQ(below.find(worker)->rank, 1);
}

TEST(FindJob, AThreadsNumberLeadsToItsProcess) {
  Child child([] { std::thread([] { ::pause(); }).join(); });
  std::vector<int> tids;
  ASSERT_TRUE(eventually([&] {
    tids = numbered_entries(proc_path(child.pid(), "task"));
    return tids.size() == 2;
  }));
  const auto job = find_job(tids[0] == child.pid() ? tids[1] : tids[0], false);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->processes.front().row.pid, child.pid());
  EXPECT_EQ(job->notes.size(), 1U);
}

stacks::ProcessStacks says(pid_t pid, std::optional<int> torch_rank, Variables environment) {
  stacks::ProcessStacks stacks;
  stacks.pid = Table::kBase + pid;
  stacks.python = stacks::PythonRuntime{};
  stacks.python->environment = std::move(environment);
  if (torch_rank) {
    stacks.torch = stacks::TorchState{};
    stacks.torch->rank = torch_rank;
    stacks.torch->world_size = 2;
  }
  return stacks;
}

TEST(RefineRoles, SpawnedRanksTellTheirRankThemselves) {
  Table table;
  table.add(10, 0, kTrain)
      .add(12, 10, kSpawnMain)
      .add(13, 10, kSpawnMain)
      .add(14, 12, kSpawnMain)
      .last()
      .comm = "pt_data_worker";
  JobTree job = table.find(10);
  refine_roles(job,
               {says(12, 1, {}), says(13, std::nullopt, {{"RANK", "0"}, {"WORLD_SIZE", "2"}})});
  EXPECT_EQ(shape(job), "10 launcher; 12 rank 1; 14 worker 1; 13 rank 0");
  EXPECT_EQ(job.world_size, 2);
  EXPECT_EQ(job.ranks_here, (std::vector<int>{0, 1}));
}

TEST(RefineRoles, AForkThatRunsItsOwnCodeIsNoDataLoader) {
  Table table;
  table.add(10, 0, kTorchrun)
      .add(11, 10, kTrain, torchrun_rank(0, 1))
      .add(12, 11, kTrain, torchrun_rank(0, 1))
      .add(13, 11, kSpawnMain, torchrun_rank(0, 1));
  JobTree job = table.find(11);
  EXPECT_EQ(shape(job), "10 launcher; 11 rank 0; 12 worker 0; 13 worker 0");
  std::vector<stacks::ProcessStacks> stacks{says(12, std::nullopt, {}), says(13, std::nullopt, {})};
  for (auto& process : stacks) {
    stacks::Frame frame;
    frame.language = stacks::Language::kPython;
    frame.function = "main";
    frame.file = process.pid == Table::kBase + 12 ? "/x/train.py"
                                                  : "/lib/python3.11/multiprocessing/spawn.py";
    process.threads.emplace_back().tid = process.pid;
    process.threads.back().frames.push_back(frame);
  }
  refine_roles(job, stacks);
  EXPECT_EQ(shape(job), "10 launcher; 11 rank 0; 12 other 0; 13 worker 0");
}

TEST(RefineRoles, SpawnedLoadersOfASingleProcessAreNoRanks) {
  Table table;
  table.add(10, 0, kTrain).add(12, 10, kSpawnMain).add(13, 10, kSpawnMain);
  JobTree job = table.find(10);
  EXPECT_EQ(shape(job), "10 launcher; 12 rank ?0; 13 rank ?1");
  std::vector<stacks::ProcessStacks> stacks{says(12, std::nullopt, {}), says(13, std::nullopt, {})};
  for (auto& process : stacks) {
    stacks::Frame frame;
    frame.language = stacks::Language::kPython;
    frame.function = "_worker_loop";
    frame.file = "/x/torch/utils/data/_utils/worker.py";
    process.threads.emplace_back().frames.push_back(frame);
  }
  refine_roles(job, stacks);
  EXPECT_EQ(shape(job), "10 rank; 12 worker; 13 worker");
}

}  // namespace
}  // namespace ddpdoctor::sources
