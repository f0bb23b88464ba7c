// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "rendezvous-incomplete";

const std::string kInInit =
    "native:recv@libc.so.6 | native:c10d::TCPStore::waitForWorkers@libtorch_cpu.so | "
    "py:_create_c10d_store@/opt/site-packages/torch/distributed/rendezvous.py:200 | "
    "py:init_process_group@/opt/site-packages/torch/distributed/distributed_c10d.py:1700 | "
    "py:main@/srv/train.py:9";

TEST(RendezvousIncomplete, NamesTheRanksThatWereNotStarted) {
  const auto findings = asked(kKind, job().ranks(4).stack(kAll, kInInit).absent(3).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({3}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1, 2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

TEST(RendezvousIncomplete, SuspectsARankThatPollsOutsideInit) {
  const auto told = [](const std::string& sleeper, model::Progress progress) {
    return asked(kKind, job()
                            .ranks(3)
                            .stack(kAll, kInInit)
                            .stack(2, "native:clock_nanosleep@libc.so.6 | py:export@/srv/train.py" +
                                          sleeper + " | py:main@/srv/train.py:20")
                            .source("/srv/train.py", R"(def export(stage):
    while not os.path.exists(stage.marker):
        time.sleep(0.05)
    time.sleep(60)
)")
                            .progress(progress)
                            .build());
  };
  const auto findings = told(":3", model::Progress::kStill);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_TRUE(told(":4", model::Progress::kStill).empty());  // one sleep, which ends
  EXPECT_TRUE(told(":3", model::Progress::kMoving).empty());
}

TEST(RendezvousIncomplete, LeavesARankThatWasKilledOnTheWayToItsDeath) {
  const auto told = [](std::int64_t parent, const std::string& end, std::int64_t number) {
    return job()
        .ranks(3)
        .stack(kAll, kInInit)
        .absent(2)
        .fact("exit", {{"parent_pid", parent}, {"role", std::string("other")}, {end, number}}, {},
              777)
        .build();
  };
  const auto killed = told(kLauncherPid, "signal", 11);
  EXPECT_TRUE(asked(kKind, killed).empty());
  const auto dead = asked("dead-rank", killed);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].culprits, model::RankSet({2}));
  EXPECT_EQ(dead[0].waiting, model::RankSet({0, 1}));
  EXPECT_NE(dead[0].summary.find("SIGSEGV"), std::string::npos);
  EXPECT_EQ(dead[0].confidence, Confidence::kLikely);  // that this child was rank 2 is inferred
  auto starts = killed;
  starts.progress = model::Progress::kMoving;
  EXPECT_TRUE(asked("dead-rank", starts).empty());
  for (const auto& other : {told(12345, "signal", 11), told(kLauncherPid, "status", 11),
                            told(kLauncherPid, "signal", 13)}) {
    EXPECT_EQ(asked(kKind, other).size(), 1u);
    EXPECT_TRUE(asked("dead-rank", other).empty());
  }
}

TEST(RendezvousIncomplete, OnlySuspectsWhileTheScriptAroundItPauses) {
  JobBuilder builder = job().ranks(4).stack(kAll, kInInit).absent(3);
  builder.process({.pid = 800,
                   .threads = {{.stack = "native:clock_nanosleep@libc.so.6",
                                .waits_on = model::WaitsOn{
                                    .kind = "timer", .target = {}, .detail = {}, .limit = 9}}}});
  EXPECT_TRUE(nothing_likely(asked(kKind, builder.build())));
}

TEST(RendezvousIncomplete, OnlySuspectsRanksThatMayRunOnAnotherNode) {
  const auto told = job()
                        .ranks(4)
                        .stack(kAll, kInInit)
                        .environment({0, 1}, "LOCAL_WORLD_SIZE", "2")
                        .absent({2, 3})
                        .build();
  EXPECT_TRUE(nothing_likely(asked(kKind, told)));
}

TEST(RendezvousIncomplete, LeavesRanksThatCountDifferentlyToTheirEnvironment) {
  const auto told = job()
                        .ranks(4)
                        .stack(kAll, kInInit)
                        .environment({0, 1}, "WORLD_SIZE", "4")
                        .environment(2, "WORLD_SIZE", "3")
                        .absent(3)
                        .build();
  EXPECT_TRUE(asked(kKind, told).empty());
  const auto differs = asked("environment-differs", told);
  ASSERT_EQ(differs.size(), 1u);
  EXPECT_EQ(differs[0].culprits, model::RankSet({2}));
}

TEST(RendezvousIncomplete, WhoeverDidNotWriteThatItGaveUpNeverCame) {
  const std::string text =
      "RuntimeError: ../x.cpp Timed out after 1801 seconds waiting for clients. 2/3 clients "
      "joined.\n";
  const auto findings = asked("rendezvous-incomplete", job().log(0, text).log(2, text).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 2}));
  EXPECT_TRUE(
      asked("rendezvous-incomplete", job().log(0, "3/3 clients joined.\n").build()).empty());
}

TEST(RendezvousIncomplete, AccusesNobodyWhenMoreJoinedThanWrote) {
  const auto findings =
      asked(kKind, job()
                       .log(0,
                            "RuntimeError: x.cpp Timed out after 1801 seconds waiting for clients. "
                            "15/16 clients joined.\n")
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
}

TEST(RendezvousIncomplete, ReadsTheStoreBarrierOfOlderTorch) {
  auto builder = job();
  for (int rank = 1; rank < 3; ++rank) {
    builder = builder.log(
        rank,
        "RuntimeError: Timed out initializing process group in store based barrier on rank: " +
            std::to_string(rank) +
            ", for key: store_based_barrier_key:1 (world_size=3, worker_count=2, "
            "timeout=0:30:00)\n");
  }
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
}

std::string in_store_barrier(const std::string& verb, int rank, int world, int joined) {
  return verb +
         " in store based barrier to initialize process group for rank: " + std::to_string(rank) +
         ", key: store_based_barrier_key:1 (world_size=" + std::to_string(world) +
         ", worker_count=" + std::to_string(joined) + ", timeout=0:30:00)\n";
}

TEST(RendezvousIncomplete, IsSilentWhenTooManyJoined) {
  std::string text;
  for (int rank = 1; rank < 4; ++rank) {
    text += in_store_barrier("Waiting", rank, 4, 8);
  }
  const model::JobModel told = job().log({}, text).build();
  EXPECT_TRUE(asked(kKind, told).empty());
  const auto findings = asked("duplicate-rank", told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].waiting, model::RankSet({1, 2, 3}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("8 ranks joined the rendezvous of a world of 4"),
            std::string::npos);
}

TEST(RendezvousIncomplete, AccusesNobodyWhenAStrangerWroteInTheWorld) {
  auto builder = job();
  for (const int rank : {1, 2, 3, 4}) {
    builder = builder.log(rank,
                          "RuntimeError: x.cpp Timed out after 1801 seconds waiting for clients. "
                          "4/4 clients joined.\n");
  }
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].culprits.empty());
}

TEST(RendezvousIncomplete, TheStoreBarrierNamesItsAuthor) {
  std::string text;
  for (const char* rank : {"0", "2"}) {
    text += std::string(
                "RuntimeError: Timed out initializing process group in store based barrier "
                "on rank: ") +
            rank +
            ", for key: store_based_barrier_key:1 (world_size=3, worker_count=2, timeout=1)\n";
  }
  const auto findings = asked(kKind, job().log({}, text).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  // The third rank may still join.
  EXPECT_TRUE(asked(kKind, job().log({}, in_store_barrier("Waiting", 0, 3, 2)).build()).empty());
}

TEST(RendezvousIncomplete, IsSilentWhenTheStoreBarrierCompleted) {
  EXPECT_TRUE(asked(kKind, job()
                               .log({}, in_store_barrier("Waiting", 0, 2, 3) +
                                            "Rank 0: Completed store-based barrier for 2 nodes.\n")
                               .build())
                  .empty());
}

TEST(RendezvousIncomplete, LeavesDifferentAddressesToTheEnvironment) {
  const std::string timed_out =
      "RuntimeError: x.cpp Timed out after 1801 seconds waiting for clients. 1/2 clients "
      "joined.\n";
  const auto with_ports = [&timed_out](const std::string& other) {
    return job()
        .log(0, "MASTER_PORT=29500\n" + timed_out)
        .log(1, "MASTER_PORT=" + other + "\n")
        .build();
  };
  EXPECT_TRUE(asked(kKind, with_ports("29501")).empty());
  EXPECT_EQ(asked(kKind, with_ports("29500")).size(), 1u);
}

TEST(RendezvousIncomplete, IsSilentWhenEveryoneIsThere) {
  EXPECT_TRUE(asked(kKind, job().ranks(4).stack(kAll, kInInit).build()).empty());
}

TEST(RendezvousIncomplete, IsSilentWhenOthersAreInACollective) {
  EXPECT_TRUE(
      asked(kKind, job().ranks(4).stack(kAll, kInInit).stack(0, kInBarrier).absent(3).build())
          .empty());
}

TEST(RendezvousIncomplete, IsOpenOverNcclWhileOneRankWaitsForAll) {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl").stack({1, 2}, kInBarrier).stack(0, kInInit).absent(3);
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({3}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1, 2}));
  EXPECT_NE(findings[0].summary.find("3 of 4 ranks"), std::string::npos);
  EXPECT_TRUE(asked("dead-rank", builder.build()).empty());
  builder.call(1, {.operation = "barrier", .sequence = 1, .state = model::CallState::kCompleted});
  EXPECT_TRUE(asked(kKind, builder.build()).empty()) << "a completed call needed all";
}

TEST(RendezvousIncomplete, IsSilentOnUnobservedRanks) {
  EXPECT_TRUE(
      nothing_likely(asked(kKind, job().ranks(4).stack(kAll, kInInit).unobserved(3).build())));
}

/// Three ranks in init_process_group; the last was given the address `place`.
Findings two_at_tcp_and_one_at(const std::string& place) {
  const auto in_init = [](const std::string& method) {
    return "native:recv@libc.so.6 | py:init_process_group{init_method='" + method +
           "'}@/opt/site-packages/torch/distributed/distributed_c10d.py:1700 | "
           "py:join@/srv/train.py:9";
  };
  JobBuilder builder = job();
  builder.ranks(3).stack({0, 1}, in_init("tcp://n0:29500")).stack(2, in_init(place));
  return asked(kKind, builder.build());
}

TEST(RendezvousIncomplete, NamesWhoWasSentToAnotherPlaceByTheCall) {
  const auto findings = two_at_tcp_and_one_at("tcp://n0:29501");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_NE(findings[0].summary.find("29501"), std::string::npos);
}

TEST(RendezvousIncomplete, IsSilentWhereThePlacesAgreeOrAreNotTold) {
  EXPECT_TRUE(two_at_tcp_and_one_at("tcp://n0:29500").empty());
  EXPECT_TRUE(two_at_tcp_and_one_at("env://").empty());
}

}  // namespace
/// torchrun on one node, which waits for the others.
ProcessStory agent(const std::vector<std::string>& options) {
  ProcessStory story{.role = model::Role::kLauncher, .command = {"python3", "torchrun"}};
  story.command.insert(story.command.end(), options.begin(), options.end());
  story.command.emplace_back("train.py");
  story.threads = {
      {.stack = "native:poll@libc.so.6 | "
                "py:StaticTCPRendezvous.next_rendezvous@/x/torch/distributed/elastic/rendezvous/"
                "static_tcp_rendezvous.py:67"}};
  return story;
}

TEST(RendezvousIncomplete, IsLikelyWhenTorchrunHasWaitedForANodeForLong) {
  const auto after = [](double seconds) {
    JobBuilder builder = job();
    builder.process(agent({"--nnodes=2", "--node_rank=0", "--nproc-per-node", "1"}));
    model::JobModel told = builder.build();
    for (model::Observation& observation : told.observations) {
      observation.time = 1000;
      for (model::Process& process : observation.processes) {
        process.start_time = 1000 - seconds;
      }
    }
    return asked(kKind, told);
  };
  ASSERT_EQ(after(100).size(), 1u);
  EXPECT_EQ(after(100)[0].confidence, Confidence::kLikely);
  EXPECT_EQ(after(20)[0].confidence, Confidence::kPossible);
}

TEST(RendezvousIncomplete, NamesTheRanksOfTheNodeThatTorchrunWaitsFor) {
  JobBuilder builder = job();
  builder.process(agent({"--nnodes=2", "--node_rank=1", "--nproc-per-node", "2",
                         "--master_addr=10.0.0.1", "--master_port=29500"}));
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_NE(findings[0].summary.find("10.0.0.1:29500"), std::string::npos);
}

TEST(RendezvousIncomplete, SaysThatAllNodesWaitBecauseTheirIdsDiffer) {
  const auto both = [](const std::string& one, const std::string& other) {
    JobBuilder builder = job();
    builder.process(agent({"--nnodes", "2", "--rdzv-endpoint=n0:1", "--rdzv-id=" + one}));
    builder.process(agent({"--nnodes", "2", "--rdzv_endpoint=n0:1", "--rdzv_id", other}));
    return asked(kKind, builder.build());
  };
  const auto findings = both("exp-17", "exp17");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("exp-17, exp17"), std::string::npos);
  EXPECT_TRUE(both("exp-17", "exp-17").empty());
}

TEST(RendezvousIncomplete, ProcessesOfOneCommandThatEachHaveWorldSize1AreNotOneJob) {
  const std::string alone = "Hello from proc 0 of 1\n";
  ASSERT_EQ(asked_of_log(kKind, "+ srun -n 2 ./hello\n" + alone + alone).size(), 1u);
  EXPECT_EQ(
      asked_of_log(kKind, "$ mpirun -np 2 ./hello\nRank: 0, size: 1\nRank: 0, size: 1\n").size(),
      1u);
  const auto by_orterun =
      asked_of_log(kKind, "$ orterun -np 2 ./hello\nRank: 0, size: 1\nRank: 0, size: 1\n");
  ASSERT_EQ(by_orterun.size(), 1u);
  EXPECT_NE(by_orterun[0].summary.find("2 processes of orterun"), std::string::npos);
  EXPECT_NE(by_orterun[0].fix.find("which mpirun"), std::string::npos) << by_orterun[0].fix;
  EXPECT_EQ(
      asked_of_log(kKind, "No PMIx server was reachable, but a PMI1/2 was detected.\n").size(), 1u);
  const std::string intel =
      "MPI startup(): PMI server not found. Please set I_MPI_PMI_LIBRARY variable if it is not a "
      "singleton case.\n";
  EXPECT_EQ(asked_of_log(kKind, intel + intel).size(), 1u);
  for (const std::string& healthy :
       {intel + alone, alone + alone, "+ srun -n 1 ./hello\n" + alone + alone,
        std::string("+ srun -n 2 ./hello\nHello from proc 0 of 2\nHello from proc 1 of 2\n"),
        std::string("+ srun -n 2 ./hello\nepoch 0 of 1\nepoch 0 of 1\n")}) {
    EXPECT_TRUE(asked_of_log(kKind, healthy).empty()) << healthy;
  }
}

TEST(RendezvousIncomplete, NcclTestsWithoutMpiHaveARank0InEachProcess) {
  const std::string first = "#  Rank  0 Group  0 Pid  71 on n1 device  0 [0x18] NVIDIA H100\n";
  const std::string other = "#  Rank  0 Group  0 Pid  72 on n1 device  0 [0x18] NVIDIA H100\n";
  const std::string next = "#  Rank  1 Group  0 Pid  72 on n1 device  1 [0x2a] NVIDIA H100\n";
  const std::string command = "$ mpirun -np 2 ./build/all_reduce_perf -g 1\n";
  ASSERT_EQ(asked_of_log(kKind, command + first + other).size(), 1u);
  EXPECT_NE(asked_of_log(kKind, command + first + other)[0].fix.find("MPI=1"), std::string::npos);
  EXPECT_TRUE(asked_of_log(kKind, command + first + next).empty());
  EXPECT_TRUE(asked_of_log(kKind, command + first + next + command + other + next).empty())
      << "two runs";
}

TEST(RendezvousIncomplete, TheReasonOfProcessesThatStartedAloneIsInTheFirstLine) {
  const std::string alone = "No PMIx server was reachable, but a PMI1/2 was detected.\n";
  const std::vector<Finding> found = asked_of_log(kKind, alone);
  ASSERT_EQ(found.size(), 1u);
  const std::size_t before = found[0].summary.find("each as rank 0 of 1, instead of one world: ");
  ASSERT_NE(before, std::string::npos) << found[0].summary;
  EXPECT_NE(found[0].summary.find("PMI", before), std::string::npos) << found[0].summary;
}

}  // namespace ddpdoctor::detectors
