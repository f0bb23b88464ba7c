// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "environment-differs";
const std::string kInInit =
    "native:recv@libc.so.6 | "
    "py:init_process_group@/opt/site-packages/torch/distributed/distributed_c10d.py:1700 | "
    "py:main@/srv/train.py:9";

JobBuilder story(const std::string& stack) {
  return job()
      .ranks(3)
      .stack(kAll, stack)
      .environment(kAll, "MASTER_PORT", "29500")
      .environment(2, "MASTER_PORT", "29501");
}

TEST(EnvironmentDiffers, NamesTheMinority) {
  const auto findings = asked(kKind, story(kInInit).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
}

TEST(EnvironmentDiffers, AccusesNobodyOnATie) {
  const auto findings = asked(kKind, job()
                                         .ranks(2)
                                         .stack(kAll, kInInit)
                                         .environment(0, "WORLD_SIZE", "2")
                                         .environment(1, "WORLD_SIZE", "4")
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].culprits.empty());
}

TEST(EnvironmentDiffers, NamesTheRankThatCannotFindTheMaster) {
  const auto findings = asked(kKind, job()
                                         .ranks(2)
                                         .stack(kAll, kInInit)
                                         .environment(0, "MASTER_PORT", "1")
                                         .environment(1, "MASTER_PORT", "2")
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
}

TEST(EnvironmentDiffers, OnlySuspectsItWhenTheRanksHaveMet) {
  EXPECT_TRUE(nothing_likely(asked(kKind, story(kInBarrier).build())));
}

TEST(EnvironmentDiffers, WhoStartedTheOthersMayHaveSetItForItselfLater) {
  model::JobModel lightning = job().ranks(2).stack(kAll, kInInit).build();
  const auto each = [&](model::Rank rank, const auto& change) {
    for (model::Observation& observation : lightning.observations) {
      for (model::Process& process : observation.processes) {
        if (process.rank == rank) {
          change(process);
        }
      }
    }
  };
  each(0, [](model::Process& process) { process.environment.erase("WORLD_SIZE"); });
  EXPECT_EQ(asked(kKind, lightning).size(), 1u);
  each(1, [](model::Process& process) { process.ppid = pid_of(0); });
  EXPECT_TRUE(asked(kKind, lightning).empty());
}

TEST(EnvironmentDiffers, AHostsVersionIsThatOfItsRanks) {
  model::JobModel nodes = job().ranks(3).stack(kAll, kInBarrier).build();
  for (model::Observation& observation : nodes.observations) {
    for (model::Process& process : observation.processes) {
      process.host = process.rank == 2 ? "node3" : "node1";
    }
  }
  const auto says = [&nodes](const char* host, const char* version) {
    nodes.facts.push_back({.rank = {},
                           .pid = {},
                           .kind = "library-version",
                           .fields = {{"library", std::string("torch")},
                                      {"version", std::string(version)},
                                      {"host", std::string(host)}}});
  };
  says("node1", "2.13.0");
  says("node3", "2.12.1");
  const auto findings = asked(kKind, nodes);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
}

TEST(EnvironmentDiffers, IsSilentWhenAllAgree) {
  EXPECT_TRUE(
      asked(kKind,
            job().ranks(3).stack(kAll, kInInit).environment(kAll, "MASTER_PORT", "29500").build())
          .empty());
}

TEST(EnvironmentDiffers, NamesNcclsSettingsWhenAllStandInOneCall) {
  const auto told = [](const std::string& of_rank_2) {
    return asked(kKind, job()
                            .ranks(3)
                            .backend("nccl")
                            .stack(kAll, kInBarrier)
                            .environment(kAll, "NCCL_P2P_DISABLE", "0")
                            .environment(2, "NCCL_P2P_DISABLE", of_rank_2)
                            .build());
  };
  ASSERT_EQ(told("1").size(), 1u);
  EXPECT_EQ(told("1")[0].culprits, model::RankSet({2}));
  EXPECT_EQ(told("1")[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(told("0").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
