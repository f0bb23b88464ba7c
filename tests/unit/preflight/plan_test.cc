// SPDX-License-Identifier: Apache-2.0
#include "collector/preflight/plan.h"

#include <gtest/gtest.h>

namespace ddpdoctor::preflight {
namespace {

Plan read(const std::vector<std::string>& command, const Environment& environment = {}) {
  return plan_of(command, environment, {});
}

TEST(Plan, OfTorchrunHasRanksPortScriptAndWorkers) {
  const Plan plan = read({"torchrun", "--nproc_per_node=4", "--nnodes", "2", "--node-rank=1",
                          "--master_addr", "10.0.0.7", "--master_port=29501", "train.py",
                          "--num-workers", "8", "--master_port=1"});
  EXPECT_EQ(plan.launcher, Launcher::kTorchrun);
  EXPECT_EQ(plan.ranks_here, 4);
  EXPECT_EQ(plan.nodes, 2);
  EXPECT_EQ(plan.node, 1);
  EXPECT_EQ(plan.address, "10.0.0.7");
  EXPECT_EQ(plan.port, 29501);
  EXPECT_EQ(plan.script, "train.py");
  EXPECT_EQ(plan.workers, 8);
}

TEST(Plan, OfTorchrunOnOneMachinePicksItsOwnPort) {
  EXPECT_EQ(read({"torchrun", "--nproc-per-node", "2", "train.py"}).port, 0);
  EXPECT_EQ(read({"torchrun", "--standalone", "--nnodes=1", "train.py"}).port, 0);
  EXPECT_EQ(read({"torchrun", "--nnodes=2", "train.py"}).port, 29500);
}

TEST(Plan, AModuleAndAnEndpointAreUnderstood) {
  const Plan plan = read({"python", "-m", "torch.distributed.run", "--nnodes=1:4",
                          "--rdzv-endpoint=[fe80::1]:2900", "--nproc_per_node=gpu", "t.py"});
  EXPECT_EQ(plan.nodes, 4);
  EXPECT_EQ(plan.address, "fe80::1");
  EXPECT_EQ(plan.port, 2900);
  EXPECT_TRUE(plan.ranks_by_gpu);
  EXPECT_FALSE(plan.ranks_here);
}

TEST(Plan, OfAccelerateCountsTheProcessesOfThisMachine) {
  const Plan plan = read({"accelerate", "launch", "--num_processes", "8", "--num_machines=2",
                          "--main_process_port", "29777", "train.py", "-j", "3"});
  EXPECT_EQ(plan.ranks_here, 4);
  EXPECT_EQ(plan.port, 29777);
  EXPECT_EQ(plan.workers, 3);
}

TEST(Plan, WithoutALauncherTheEnvironmentDecides) {
  const Plan plan =
      read({"python", "train.py", "--workers=2"}, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "4000"}});
  EXPECT_EQ(plan.launcher, Launcher::kNone);
  EXPECT_EQ(plan.address, "a");
  EXPECT_EQ(plan.port, 4000);
  EXPECT_EQ(plan.workers, 2);
}

TEST(Plan, OptionsOfTheUserCountMoreThanTheCommand) {
  Plan given;
  given.ranks_here = 16;
  given.workers = 1;
  const Plan plan = plan_of({"torchrun", "--nproc_per_node=4", "t.py", "--workers=9"}, {}, given);
  EXPECT_EQ(plan.ranks_here, 16);
  EXPECT_EQ(plan.workers, 1);
}

TEST(Plan, OddWordsAreHarmless) {
  EXPECT_EQ(read({}).launcher, Launcher::kNone);
  EXPECT_FALSE(read({"torchrun", "--nproc_per_node=99999999999999", "--master_port"}).ranks_here >
               1);
  EXPECT_EQ(read({"torchrun", "--master_port=-5", "t.py"}).port, 0);
  EXPECT_EQ(read({"torchrun", "--rdzv_endpoint=:", "t.py"}).port, std::nullopt);
}

}  // namespace
}  // namespace ddpdoctor::preflight
