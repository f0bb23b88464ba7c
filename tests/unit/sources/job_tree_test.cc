// SPDX-License-Identifier: Apache-2.0
// Trees of processes for every way of starting a job.
#include <gtest/gtest.h>

#include "tests/unit/sources/children.h"
#include "tests/unit/sources/job_table.h"

namespace ddpdoctor::sources {
namespace {

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
  separate.add(11, 10, kTrain).last().arguments_at = 815;  // the same command, but restarted
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
  EXPECT_NE(both.notes[0].find("2 jobs run below"), std::string::npos) << both.notes[0];
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
  JobTree job = table.find(11);
  EXPECT_EQ(shape(job), "10 launcher; 11 rank 0");
  refine_roles(job, {});
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

TEST(JobTree, ProgramsThatLightningsRankZeroStartsAreNoRanks) {
  const auto inherited = [](const char* rank) {
    return Variables{{"LOCAL_RANK", rank},
                     {"NODE_RANK", "0"},
                     {"WORLD_SIZE", "2"},
                     {"MASTER_ADDR", "h"},
                     {"MASTER_PORT", "1"}};
  };
  Table table;
  table.add(10, 0, kTrain)
      .add(11, 10, {"/venv/bin/python", "/srv/" + kTrain.back()}, inherited("1"))
      .add(12, 10, {"/bin/sh", "-c", "head log | xz"}, inherited("0"))
      .add(13, 12, {"xz", "-1"}, inherited("0"))
      .add(14, 10, {"tensorboard"}, inherited("0"));
  EXPECT_EQ(shape(table.find(10)), "10 rank 0; 11 rank 1; 12 other 0; 13 other 0; 14 other 0");
}

TEST(JobTree, WhatAProgramWithMpiOfItsOwnStartsIsNoRank) {
  const Variables singleton = {{"PMIX_RANK", "0"}};
  Table table;
  table.add(10, 0, kTrain)
      .add(11, 10, {"/bin/sh", "-c", "head log | xz"}, singleton)
      .add(12, 11, {"xz", "-1"}, singleton);
  EXPECT_EQ(shape(table.find(10)), "10 other; 11 other; 12 other");
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

TEST(JobTree, AZombieOfALauncherOfTheUsersOwnIsTheRankThatIsMissing) {
  const auto plain = [](int rank) {
    return std::map<std::string, std::string>{{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "3"}};
  };
  Table table;
  table.add(10, 0, {"python", "fleet.py"})
      .add(11, 10, kTrain, plain(0))
      .add(12, 10, kTrain, plain(1))
      .add(13, 10, {})
      .last()
      .state = 'Z';
  EXPECT_EQ(shape(table.find(10)), "10 launcher; 11 rank 0; 12 rank 1; 13 rank 2");
  Table reversed;
  reversed.add(10, 0, {"python", "fleet.py"})
      .add(11, 10, kTrain, plain(2))
      .add(12, 10, kTrain, plain(1))
      .add(13, 10, {})
      .last()
      .state = 'Z';
  EXPECT_EQ(shape(reversed.find(10)), "10 launcher; 11 rank 2; 12 rank 1; 13 rank ?0");
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

}  // namespace
}  // namespace ddpdoctor::sources
