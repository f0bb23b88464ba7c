// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

TEST(DuplicateRank, NamesBothProcessesAndTheMissingRank) {
  const auto findings = asked("duplicate-rank", job()
                                                    .ranks(2)
                                                    .stack(0, kInBarrier)
                                                    .absent(1)
                                                    .process({.role = model::Role::kRank,
                                                              .rank = 0,
                                                              .pid = 777,
                                                              .ppid = kLauncherPid,
                                                              .threads = {{.stack = kInBarrier}}})
                                                    .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_NE(findings[0].summary.find("rank 1"), std::string::npos);
}

TEST(DuplicateRank, NamesTheVariableThatToldTheRankOrNone) {
  const auto evidence = [](const std::string& name) {
    JobBuilder builder = job();
    builder.ranks(2).stack(0, kInBarrier).absent(1);
    builder.environment(0, "RANK", "");  // set by the builder on all ranks
    if (!name.empty()) {
      builder.environment(0, name, "0");
    }
    builder.process({.role = model::Role::kRank,
                     .rank = 0,
                     .pid = 777,
                     .ppid = kLauncherPid,
                     .threads = {{.stack = kInBarrier}}});
    return asked("duplicate-rank", builder.build()).at(0);
  };
  const auto says = [&](const std::string& name, std::string_view words) {
    const Finding finding = evidence(name);
    return std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const auto& line) {
      return line.text.find(words) != std::string::npos;
    });
  };
  EXPECT_TRUE(says("RANK", "was started with RANK=0"));
  EXPECT_TRUE(says("SLURM_PROCID", "was started with SLURM_PROCID=0"));
  EXPECT_FALSE(says("", "was started with"));
  const Finding spawned = evidence("");
  EXPECT_NE(spawned.evidence.at(0).text.find("claims rank 0"), std::string::npos);
  EXPECT_NE(spawned.fix.find("rank= to init_process_group"), std::string::npos);
}

TEST(DuplicateRank, OnlySuspectsAJobThatStillStartsUp) {
  EXPECT_TRUE(nothing_likely(
      asked("duplicate-rank",
            job()
                .ranks(2)
                .stack(0, "py:<module>@/srv/train.py:8")
                .absent(1)
                .process({.role = model::Role::kRank, .rank = 0, .pid = 777, .ppid = kLauncherPid})
                .progress(model::Progress::kMoving)
                .build())));
}

TEST(DuplicateRank, IsSureOfHostsThatSpinInACollectiveAndLeavesNoDeadRank) {
  const std::string spins =
      "native:??@libcuda.so.1 | py:barrier@/v/site-packages/torch/distributed/distributed_c10d.py"
      ":5356 | py:train@/srv/train.py:20";
  JobBuilder told = job();
  told.ranks(3).backend("nccl").state(kAll, 'R').stack({0, 1}, spins).absent(2);
  const std::string dead = "dead-rank";
  EXPECT_EQ(asked(dead, told.build()).size(), 1U);
  told.process({.role = model::Role::kRank,
                .rank = 1,
                .pid = 777,
                .ppid = kLauncherPid,
                .threads = {{.stack = spins, .state = 'R'}}});
  const auto findings = asked("duplicate-rank", told.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_TRUE(asked(dead, told.build()).empty());
}

TEST(DuplicateRank, IsSilentOnAChildOfTheRank) {
  EXPECT_TRUE(
      asked("duplicate-rank",
            job()
                .ranks(2)
                .stack(kAll, kInBarrier)
                .process({.role = model::Role::kRank, .rank = 0, .pid = 7777, .ppid = pid_of(0)})
                .build())
          .empty());
}

TEST(DuplicateRank, IsSilentWhenEveryRankIsOnce) {
  EXPECT_TRUE(asked("duplicate-rank", job().ranks(2).stack(kAll, kInBarrier).build()).empty());
}

/// Ranks 1-2 have no process; two more processes of RANK=0 ended with status 1.
model::JobModel shut_out(const std::string& log) {
  JobBuilder builder = job();
  builder.ranks(3).stack(0, kInBarrier).absent(1).absent(2).log(0, log);
  for (const pid_t pid : {777, 778}) {
    builder.process({.rank = 0,
                     .pid = pid,
                     .ppid = kLauncherPid,
                     .exit = model::Exit{.status = 1, .signal = {}}});
  }
  return builder.build();
}

TEST(DuplicateRank, CountsThoseWhomTheFirstShutOutOfItsPort) {
  const auto findings =
      asked("duplicate-rank",
            shut_out("torch.distributed.DistNetworkError: failed to listen, name: EADDRINUSE\n"));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_NE(findings[0].summary.find("3 processes"), std::string::npos);
  EXPECT_TRUE(asked("duplicate-rank", shut_out("ImportError: no module named yaml\n")).empty());
}

std::string announced(int rank) {
  return "initializing ddp: GLOBAL_RANK: " + std::to_string(rank) +
         ", MEMBER: " + std::to_string(rank + 1) + "/4\n";
}

Findings told_by(const std::string& text) {
  model::JobModel log;
  log.logs.push_back({.rank = {}, .text = text});
  return asked("duplicate-rank", log);
}

TEST(DuplicateRank, IsToldByAnnouncementsInALog) {
  const auto findings = told_by(announced(1) + "CUDA_VISIBLE_DEVICES: [0,1]\n" + announced(0) +
                                announced(1) + announced(0));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
  EXPECT_NE(findings[0].summary.find("none as ranks 2 and 3"), std::string::npos);
}

TEST(DuplicateRank, TheLogOfOneNodeAndASecondAttemptAreFine) {
  EXPECT_TRUE(told_by(announced(0) + announced(1)).empty());
  EXPECT_TRUE(told_by(announced(0) + announced(1) + "RuntimeError: Connection reset by peer\n" +
                      announced(0) + announced(1))
                  .empty());
  EXPECT_TRUE(
      told_by(announced(0) + announced(1) + announced(2) + announced(3) + announced(0)).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
