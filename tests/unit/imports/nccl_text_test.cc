// SPDX-License-Identifier: Apache-2.0
// Addresses and failures that NCCL's log names.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collector/imports/logs/text_file.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::vector<std::string> addresses(const std::string& log) {
  std::vector<std::string> out;
  const auto job = read_log(log);
  for (const model::Fact* fact : model::facts(job, "nccl-interface")) {
    out.push_back(fact->text("host").value_or("") + " " + fact->text("interface").value_or("") +
                  " " + fact->text("address").value_or(""));
  }
  return out;
}

TEST(NcclText, ReadsTheFirstInterfaceInTheFormsOfAllReleases) {
  EXPECT_EQ(
      addresses("a:7:9 [0] NCCL INFO NET : Using interface lo:127.0.0.1<0>\n"
                "a:7:9 [0] NCCL INFO NET : Using interface eth0:10.0.0.1<0>\n"
                "b:8:9 [0] NCCL INFO Bootstrap : Using [0]eth1:10.0.0.2<0> [1]eth2:10.1.0.2<0>\n"
                "c:9:9 [0] NCCL INFO Bootstrap: Using enp68s0:192.168.1.20<0>\n"),
      (std::vector<std::string>{"a lo 127.0.0.1", "b eth1 10.0.0.2", "c enp68s0 192.168.1.20"}));
}

TEST(NcclText, ReadsTheGpuOfEachRank) {
  const std::string member = "b:8:9 [3] NCCL INFO comm 0x55 rank 5 nranks 8 cudaDev 3 busId ";
  const auto job = read_log(member + "1b000 - Init COMPLETE\n" + member + "1b000 - Init START\n");
  const auto facts = model::facts(job, "nccl-device");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0]->rank, 5);
  EXPECT_EQ(facts[0]->text("address"), "0000:1b:00.0");
  for (const std::string bus : {"", "zz", "ffffffffffffffff"}) {
    EXPECT_TRUE(model::facts(read_log(member + bus + " - Init START\n"), "nccl-device").empty());
  }
}

TEST(NcclText, AnAdapterOfInfiniBandHasNoAddress) {
  EXPECT_TRUE(
      addresses("a:7:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB eth0:10.0.0.1<0>\n"
                "a:7:9 [0] NCCL INFO NET/IB : Using interface lo for sideband\n")
          .empty());
}

TEST(NcclText, ACallThatFailsCountsOnlyIfNcclReturnedAnError) {
  const std::string warning =
      "a:7:9 [3] include/alloc.h:58 NCCL WARN Cuda failure 'out of memory'\n";
  EXPECT_TRUE(model::facts(read_log(warning), "nccl-failure").empty());
  EXPECT_TRUE(model::facts(read_log(warning + "a:7:9 [3] NCCL INFO Trees [0] 1/-1/-1->0->-1\n"),
                           "nccl-failure")
                  .empty());
  const auto job = read_log(warning + "a:7:9 [3] NCCL INFO init.cc:792 -> 1\n");
  const auto facts = model::facts(job, "nccl-failure");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0]->pid, 7);
  EXPECT_EQ(facts[0]->number("gpu"), 3);
  EXPECT_EQ(facts[0]->text("error"), "out of memory");
}

TEST(NcclText, EachGpuOfOneProcessHasItsOwnFailure) {
  const std::string devices =
      "#  Rank  0 Group  0 Pid     7 on  a device  0 [0x18] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Group  0 Pid     7 on  a device  1 [0x2a] NVIDIA H100 80GB HBM3\n";
  const auto fails = [](const std::string& gpu) {
    return "a:7:9 [" + gpu +
           "] transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'\n" + "a:7:9 [" +
           gpu + "] NCCL INFO transport/nvls.cc:394 -> 1\n";
  };
  const auto job = read_log(devices + fails("1") + fails("0"));
  const auto facts = model::facts(job, "nccl-failure");
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_EQ(facts[0]->rank, 1);
  EXPECT_EQ(facts[1]->rank, 0);
  EXPECT_EQ(facts[0]->text("source"), "transport/nvls.cc");
}

TEST(NcclText, TheFirstWarningIsTheTextOfAnErrorOfNcclItself) {
  const std::string warning =
      "a:7:9 [2] graph/xml.h:101 NCCL WARN Attribute arch of node cpu not found\n"
      "a:7:9 [2] graph/xml.h:88 NCCL WARN and another\n";
  const auto job = read_log(warning +
                            "a:7:9 [2] NCCL INFO graph/topo.cc:493 -> 3\n"
                            "a:7:7 [2] NCCL INFO init.cc:1012 -> 3\n");
  const auto facts = model::facts(job, "nccl-failure");
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0]->text("error"), "Attribute arch of node cpu not found");
  EXPECT_EQ(facts[0]->text("source"), "graph/xml.h");
  EXPECT_EQ(facts[0]->number("code"), 3);
  // The cause of a system error is outside NCCL: the network, too little memory.
  EXPECT_TRUE(
      model::facts(read_log(warning + "a:7:9 [2] NCCL INFO init.cc:9 -> 2\n"), "nccl-failure")
          .empty());
  EXPECT_TRUE(model::facts(read_log(warning), "nccl-failure").empty());
}

}  // namespace
}  // namespace ddpdoctor::imports
