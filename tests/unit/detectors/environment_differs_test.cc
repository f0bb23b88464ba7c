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

TEST(EnvironmentDiffers, IsSilentOnRanksThatEndAndShowTheirInitialVariablesOnly) {
  const auto told = [](bool all_tell) {
    JobBuilder builder = job().ranks(4).stack(kAll, kInInit);
    builder.environment(kAll, "MASTER_PORT", "29500").environment(1, "NCCL_NET", "Socket");
    model::JobModel model = builder.build();
    for (model::Observation& observation : model.observations) {
      for (model::Process& process : observation.processes) {
        if (!all_tell && process.rank != 1) {
          process.environment.erase("RANK");
        }
      }
    }
    return asked(kKind, model);
  };
  EXPECT_TRUE(told(false).empty());
  EXPECT_EQ(told(true).size(), 1u);
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

constexpr std::string_view kGaveUp =
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 2/3 "
    "clients joined.\n";

TEST(EnvironmentDiffers, ReadsThePortsThatRanksPrint) {
  for (const std::string form :
       {"MASTER_PORT={}", "{'MASTER_ADDR': 'n0', 'MASTER_PORT': '{}'}", "+ export MASTER_PORT={}",
        "torchrun --nnodes 3 --master_port {} fit.py", "torchrun --master-port={} fit.py",
        "torchrun --rdzv_endpoint=n0:{} fit.py", "init_method=tcp://10.0.0.1:{}",
        "init_process_group(init_method='tcp://n0:{}')", "Namespace(dist_url='tcp://n0:{}')"}) {
    const auto line = [&form](int rank, const std::string& port) {
      std::string text = form;
      return "[rank" + std::to_string(rank) + "]: " + text.replace(text.rfind("{}"), 2, port) +
             "\n";
    };
    const auto told = [&](const std::string& of_rank_1, std::string_view end) {
      return asked(kKind, job()
                              .log({}, line(0, "29500") + line(1, of_rank_1) + line(2, "29500") +
                                           "[rank0]: " + std::string(end))
                              .build());
    };
    const auto findings = told("29501", kGaveUp);
    ASSERT_EQ(findings.size(), 1u) << form;
    EXPECT_EQ(findings[0].culprits, model::RankSet({1})) << form;
    EXPECT_EQ(findings[0].confidence, Confidence::kLikely) << form;
    EXPECT_NE(findings[0].summary.find("29501 on rank 1, but"), std::string::npos)
        << findings[0].summary;
    EXPECT_TRUE(told("29500", kGaveUp).empty()) << form;
    EXPECT_TRUE(told("29501", "step 1\n").empty()) << form;
  }
}

TEST(EnvironmentDiffers, NamesNodesWhereNoLineNamesARank) {
  const auto told = [](const std::string& port) {
    return asked(kKind, job()
                            .log({},
                                 "+ torchrun --node_rank=0 --master_port=29500 fit.py\n"
                                 "+ torchrun --node_rank=1 --master_port=" +
                                     port + " fit.py\n" + std::string(kGaveUp))
                            .build());
  };
  const auto findings = told("29501");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].summary.find("29500 on node 0, but 29501 on node 1"), std::string::npos)
      << findings[0].summary;
  EXPECT_TRUE(told("29500").empty());
}

TEST(EnvironmentDiffers, ComparesOnlyOneNotation) {
  const std::string ends = "[rank0]: " + std::string(kGaveUp);
  for (const std::string& text :
       {// torchrun chooses the port of its ranks itself.
        std::string("[rank0]: MASTER_PORT=41011\n[rank1]: --master_port=29500\n"),
        // Started again: each rank shows both.
        std::string("[rank0]: MASTER_PORT=1\n[rank0]: MASTER_PORT=2\n[rank1]: MASTER_PORT=2\n"),
        std::string("[rank0]: MASTER_PORT=$PORT\n[rank1]: MASTER_PORT=2\n"),
        std::string("[rank0]: MASTER_ADDR is not set\n[rank1]: MASTER_ADDR=10.0.0.1\n")}) {
    EXPECT_TRUE(asked(kKind, job().log({}, text + ends).build()).empty()) << text;
  }
}

TEST(EnvironmentDiffers, AnAddressDecidesOnlyIfItCannotBeReached) {
  const std::string ranks = "[rank0]: MASTER_ADDR=10.0.0.1\n[rank1]: MASTER_ADDR=10.0.0.7\n";
  const auto two_names = asked(kKind, job().log({}, ranks + std::string(kGaveUp)).build());
  ASSERT_EQ(two_names.size(), 1u);
  EXPECT_EQ(two_names[0].confidence, Confidence::kPossible);
  const auto unreachable =
      asked(kKind, job()
                       .log({}, ranks + "[rank1]: torch.distributed.DistNetworkError: The client "
                                        "socket has timed out after 600000ms while trying to "
                                        "connect to (10.0.0.7, 29500).\n")
                       .build());
  ASSERT_EQ(unreachable.size(), 1u);
  EXPECT_EQ(unreachable[0].confidence, Confidence::kLikely);
  EXPECT_EQ(unreachable[0].culprits, model::RankSet({1}));
}

TEST(EnvironmentDiffers, ReadsThePortToWhichAClientCannotConnect) {
  const std::string lines =
      "[rank0]: MASTER_PORT=29500\n[rank1]: torch.distributed.DistNetworkError: The client socket "
      "has timed out after 600000ms while trying to connect to (n0, 29501).\n";
  const auto findings =
      asked(kKind, job().log({}, lines + "[rank0]: " + std::string(kGaveUp)).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  // No rank waits for the others: it may be a store of a different purpose.
  EXPECT_TRUE(asked(kKind, job().log({}, lines).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
