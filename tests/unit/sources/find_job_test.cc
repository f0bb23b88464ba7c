// SPDX-License-Identifier: Apache-2.0
// Real process trees, to check our assumptions about /proc; stacks supply what /proc cannot show.
#include <gtest/gtest.h>

#include "tests/unit/sources/children.h"
#include "tests/unit/sources/job_table.h"

namespace ddpdoctor::sources {
namespace {

TEST(FindJob, NoSuchProcessIsAnErrorThatSaysWhatToDo) {
  const auto job = find_job((1 << 22) + 5, true);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().what, fmt::format("there is no process {}", (1 << 22) + 5));
  EXPECT_FALSE(job.error().hint.empty());
  EXPECT_FALSE(find_job(0, true));
  EXPECT_FALSE(find_job(-1, true));
  EXPECT_FALSE(find_job(::getpid(), true));
}

/// Real: a shell, "torchrun" as its child, two ranks, one of them with a forked worker.
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

TEST(RefineRoles, WhoIsInAProcessGroupIsARankWithoutAnyVariable) {
  const std::vector<std::string> node = {"python", "node.py", "--rank"};
  Table table;
  table.add(10, 0, {"bash", "cmd.sh"}).add(11, 10, node).add(12, 10, node).add(13, 12, node);
  JobTree job = table.find(10);
  refine_roles(job, {says(11, 0, {}), says(12, 1, {}), says(13, 1, {})});
  EXPECT_EQ(shape(job), "10 other; 11 rank 0; 12 rank 1; 13 other 1");
}

TEST(RefineRoles, ARankThatOnlyTorchNumbersDoesNotLeadToTheOthers) {
  Table table;
  table.add(11, 0, {"python", "job.py"}).add(12, 0, {"python", "job.py"});
  JobTree alone = table.find(11);
  alone.world_size = 2;
  refine_roles(alone, {says(11, 1, {})});
  EXPECT_TRUE(alone.ranks_here.empty());  // rank 0 may be process 12: it is not known to be missing
}

TEST(RefineRoles, WhoStartsTheOtherRanksAndIsRankZeroIsNotMissed) {
  Table table;
  Variables second = torchrun_rank(1);
  second.erase("RANK");  // as started by Lightning
  second["NODE_RANK"] = "0";
  table.add(10, 0, kTrain).add(11, 10, kTrain, second);
  JobTree job = table.find(10);
  refine_roles(job, {says(10, 0, {}), says(11, 1, {})});
  EXPECT_EQ(shape(job), "10 rank 0; 11 rank 1");
  EXPECT_TRUE(job.notes.empty());
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

stacks::ProcessStacks stands_in(int pid, const char* function, const char* file) {
  stacks::ProcessStacks process = says(pid, std::nullopt, {});
  stacks::Frame frame;
  frame.language = stacks::Language::kPython;
  frame.function = function;
  frame.file = file;
  process.threads.emplace_back().tid = process.pid;
  process.threads.back().frames.push_back(frame);
  return process;
}

TEST(RefineRoles, WorkersOfAPoolAreNoRanks) {
  Table table;
  table.add(10, 0, kTrain).add(12, 10, kSpawnMain).add(13, 10, kSpawnMain);
  JobTree job = table.find(10);
  refine_roles(job,
               {stands_in(12, "worker", "/lib/python3.11/multiprocessing/pool.py"),
                stands_in(13, "_process_worker", "/lib/python3.11/concurrent/futures/process.py")});
  EXPECT_EQ(shape(job), "10 rank; 12 other; 13 other");
}

TEST(RefineRoles, ASingleForkThatSaysNothingOfARankIsNone) {
  Table table;
  table.add(10, 0, kTrain).add(12, 10, kTrain);
  JobTree job = table.find(10);
  refine_roles(job, {stands_in(12, "work", "/x/train.py")});
  EXPECT_EQ(shape(job), "10 rank; 12 other");
}

TEST(RefineRoles, WhoStandsInInitProcessGroupIsTheRankItWasGiven) {
  Table table;
  table.add(10, 0, {"bash", "cmd.sh"}).add(12, 10, kTrain).add(13, 10, kTrain);
  JobTree job = table.find(10);
  const char* const c10d = "/x/torch/distributed/distributed_c10d.py";
  stacks::ProcessStacks second = stands_in(12, "init_process_group", c10d);
  second.threads[0].frames[0].locals = {{"rank", "1"}, {"world_size", "3"}};
  stacks::ProcessStacks by_environment = stands_in(13, "init_process_group", c10d);
  by_environment.threads[0].frames[0].locals = {{"rank", "-1"}, {"world_size", "-1"}};
  refine_roles(job, {second, by_environment});
  EXPECT_NE(shape(job).find("12 rank 1"), std::string::npos);
  EXPECT_EQ(shape(job).find("13 rank 2"), std::string::npos);
  EXPECT_EQ(job.world_size, 3);
}

/// `process` is in init_process_group with this rank of `world`.
stacks::ProcessStacks joins(int pid, int rank, int world) {
  stacks::ProcessStacks process =
      stands_in(pid, "init_process_group", "/x/torch/distributed/distributed_c10d.py");
  process.threads[0].frames[0].locals = {{"rank", std::to_string(rank)},
                                         {"world_size", std::to_string(world)}};
  return process;
}

TEST(RefineRoles, TheOrderOfStartIsNoRankWhereANodeStartsItsPart) {
  Table table;
  table.add(10, 0, kTrain).add(12, 10, kTrain).add(13, 10, kTrain);
  JobTree job = table.find(10);
  refine_roles(job, {joins(12, 2, 4), stands_in(13, "load", "/x/train.py")});
  EXPECT_EQ(shape(job), "10 launcher; 12 rank 2; 13 rank");
  JobTree whole = table.find(10);
  refine_roles(whole, {joins(12, 0, 2), stands_in(13, "load", "/x/train.py")});
  EXPECT_EQ(shape(whole), "10 launcher; 12 rank 0; 13 rank ?1");
}

TEST(RefineRoles, WhoWaitsForItsOnlyChildIsNoRankWhenThatOneIs) {
  Table table;
  table.add(10, 0, kTrain).add(12, 10, kTrain);
  JobTree job = table.find(10);
  refine_roles(
      job, {joins(12, 0, 2), stands_in(10, "BaseProcess.join", "/lib/multiprocessing/process.py")});
  EXPECT_EQ(shape(job), "10 launcher; 12 rank 0");
}

TEST(RefineRoles, TwoForksOfOneProgramStayRanks) {
  Table table;
  table.add(10, 0, kTrain).add(12, 10, kTrain).add(13, 10, kTrain);
  JobTree job = table.find(10);
  refine_roles(job, {stands_in(12, "work", "/x/train.py"), stands_in(13, "work", "/x/train.py")});
  EXPECT_EQ(shape(job), "10 launcher; 12 rank ?0; 13 rank ?1");
}

}  // namespace
}  // namespace ddpdoctor::sources
