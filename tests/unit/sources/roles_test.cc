// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/roles.h"

#include <gtest/gtest.h>

namespace ddpdoctor::sources {
namespace {

ProcessRow started_as(std::vector<std::string> command, std::string comm = "python3") {
  ProcessRow row;
  row.pid = 100;
  row.comm = std::move(comm);
  row.command = std::move(command);
  return row;
}

TEST(Program, LaunchersAreKnownByScriptAndByModule) {
  const std::vector<std::vector<std::string>> launchers{
      {"/venv/bin/python3", "/venv/bin/torchrun", "--nproc-per-node=2", "train.py"},
      {"python", "-m", "torch.distributed.run", "train.py"},
      {"python", "-u", "-X", "dev", "-m", "torch.distributed.launch", "train.py"},
      {"python3.11", "/site-packages/torch/distributed/run.py", "train.py"},
      {"python", "/venv/bin/accelerate", "launch", "train.py"},
      {"python", "-um", "accelerate.commands.launch", "train.py"},
      {"python", "-m", "deepspeed.launcher.launch", "--world_info=x", "train.py"},
      {"/usr/bin/mpirun", "-n", "2", "python", "train.py"},
      {"srun", "python", "train.py"},
  };
  for (const auto& command : launchers) {
    EXPECT_EQ(program_of(started_as(command)), Program::kLauncher)
        << command[0] << " " << command[1];
  }
  EXPECT_EQ(program_of(started_as({"python", "torchrunner.py"})), Program::kPython);
  EXPECT_EQ(program_of(started_as({"python", "train.py", "torchrun"})), Program::kPython);
  EXPECT_EQ(program_of(started_as({"x"}, "pt_elastic")), Program::kLauncher);
}

TEST(Program, MultiprocessingsOwnProcessesAreTold) {
  EXPECT_EQ(
      program_of(started_as(
          {"python", "-c",
           "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)",
           "--multiprocessing-fork"})),
      Program::kSpawned);
  EXPECT_EQ(program_of(started_as(
                {"python", "-c", "from multiprocessing.resource_tracker import main;main(3)"})),
            Program::kResourceTracker);
  EXPECT_EQ(program_of(started_as(
                {"python", "-c", "from multiprocessing.forkserver import main; main(1, 2, [])"})),
            Program::kForkServer);
  EXPECT_EQ(program_of(started_as(
                {"python", "/t/torch/_inductor/compile_worker/__main__.py", "--workers=2"})),
            Program::kCompileWorker);
  EXPECT_EQ(program_of(started_as({"/t/torch/bin/torch_shm_manager"}, "torch_shm_manag")),
            Program::kShmManager);
}

TEST(Program, AShellWithAScriptIsNotAShellSomebodyTypesInto) {
  EXPECT_EQ(program_of(started_as({"bash", "cmd.sh"}, "bash")), Program::kShell);
  EXPECT_EQ(program_of(started_as({"/bin/sh", "-ec", "torchrun x"}, "sh")), Program::kShell);
  EXPECT_EQ(program_of(started_as({"-bash"}, "bash")), Program::kInteractive);
  EXPECT_EQ(program_of(started_as({"bash", "-i"}, "bash")), Program::kInteractive);
  EXPECT_EQ(program_of(started_as({"bash", "--init-file", "/x/rc.sh", "-i"}, "bash")),
            Program::kInteractive);
}

TEST(Program, NothingAboveABoundaryBelongsToTheJob) {
  for (const auto& command :
       std::vector<std::vector<std::string>>{{"sshd: user@pts/0"},
                                             {"tmux: server"},
                                             {"/sbin/init"},
                                             {"python", "-m", "pytest", "tests"},
                                             {"python", "/venv/bin/pytest"},
                                             {"/x/ddpdoctor", "run", "--", "torchrun"}}) {
    EXPECT_EQ(program_of(started_as(command, "x")), Program::kBoundary) << command[0];
  }
  ProcessRow first = started_as({"python", "train.py"});
  first.pid = 1;
  EXPECT_EQ(program_of(first), Program::kBoundary);
}

TEST(Program, OddCommandLinesAreHarmless) {
  EXPECT_EQ(program_of(started_as({}, "")), Program::kOther);
  EXPECT_EQ(program_of(started_as({""}, "")), Program::kOther);
  EXPECT_EQ(program_of(started_as({"/"}, "")), Program::kOther);
  EXPECT_EQ(program_of(started_as({"python", "-m"})), Program::kPython);
  EXPECT_EQ(program_of(started_as({"python", "-"})), Program::kPython);
  EXPECT_EQ(program_of(started_as({"python", ""})), Program::kPython);
}

TEST(RankClaim, TorchrunsVariablesAreTheBest) {
  const RankClaim claim = rank_claim({{"RANK", "5"},
                                      {"WORLD_SIZE", "8"},
                                      {"LOCAL_RANK", "1"},
                                      {"LOCAL_WORLD_SIZE", "4"},
                                      {"GROUP_WORLD_SIZE", "2"},
                                      {"SLURM_PROCID", "0"},
                                      {"MASTER_ADDR", "h"},
                                      {"MASTER_PORT", "1"}});
  EXPECT_EQ(claim.rank, 5);
  EXPECT_EQ(claim.world_size, 8);
  EXPECT_EQ(claim.local_rank, 1);
  EXPECT_EQ(claim.local_world_size, 4);
  EXPECT_EQ(claim.nodes, 2);
  EXPECT_FALSE(claim.weak);
  EXPECT_FALSE(claim.job.empty());
}

TEST(RankClaim, BatchSystemAndMpiAreWeak) {
  const RankClaim slurm =
      rank_claim({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "9"}});
  EXPECT_EQ(slurm.rank, 3);
  EXPECT_EQ(slurm.world_size, 4);
  EXPECT_TRUE(slurm.weak);
  const RankClaim mpi = rank_claim({{"OMPI_COMM_WORLD_RANK", "2"},
                                    {"OMPI_COMM_WORLD_SIZE", "4"},
                                    {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_EQ(mpi.rank, 2);
  EXPECT_EQ(mpi.local_rank, 0);
  EXPECT_TRUE(mpi.weak);
}

TEST(RankClaim, NumbersThatAreNoRanksAreNone) {
  for (const char* text : {"", "-1", "x", "1x", "99999999999", "2147483647", " "}) {
    EXPECT_FALSE(rank_claim({{"RANK", text}}).rank) << text;
  }
  EXPECT_EQ(rank_claim({{"RANK", " 3 "}}).rank, 3);
  EXPECT_TRUE(rank_claim({{"RANK", "7"}, {"WORLD_SIZE", "2"}}).weak);
}

}  // namespace
}  // namespace ddpdoctor::sources
