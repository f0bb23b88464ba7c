// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "master-unreachable";
const std::string kInInit =
    "native:connect@libc.so.6 | "
    "py:init_process_group@/opt/site-packages/torch/distributed/distributed_c10d.py:1700 | "
    "py:main@/srv/train.py:9";

JobBuilder story(bool in_job, bool local = true) {
  return job()
      .ranks(2)
      .stack(kAll, kInInit)
      .fact("listen", {{"address", std::string("127.0.0.1")},
                       {"port", std::int64_t{29500}},
                       {"local", local},
                       {"listening", true},
                       {"listener_pid", std::int64_t{42}},
                       {"listener_command", std::string("nginx")},
                       {"listener_in_job", in_job}});
}

TEST(MasterUnreachable, NamesTheStrangerOnThePort) {
  const auto findings = asked(kKind, story(false).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("nginx"), std::string::npos);
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1}));
}

/// Rank 0 has exited; rank 1 runs train.py and waits at a port that process 42 holds.
JobBuilder held_by(const std::string& command) {
  JobBuilder builder = job();
  builder.ranks(2)
      .stack(1, kInInit)
      .absent(0)
      .fact("listen", {{"address", std::string("127.0.0.1")},
                       {"port", std::int64_t{29500}},
                       {"local", true},
                       {"listening", true},
                       {"listener_pid", std::int64_t{42}},
                       {"listener_command", command},
                       {"listener_in_job", false}});
  return builder;
}

model::JobModel of_train(const JobBuilder& builder) {
  model::JobModel told = builder.build();
  for (model::Observation& look : told.observations) {
    for (model::Process& process : look.processes) {
      process.command = {"python", "/srv/train.py", "--lr=1"};
    }
  }
  return told;
}

TEST(MasterUnreachable, IsCertainOfAStrangerAndNotOfARankThatWasNotSeen) {
  const auto stranger = asked(kKind, of_train(held_by("redis-server *:29500")));
  ASSERT_EQ(stranger.size(), 1u);
  EXPECT_EQ(stranger[0].confidence, Confidence::kCertain);
  EXPECT_NE(stranger[0].summary.find("in use by process 42 (redis-server"), std::string::npos);
  EXPECT_NE(stranger[0].fix.find("process 42"), std::string::npos);
  EXPECT_TRUE(asked("rendezvous-incomplete", of_train(held_by("redis-server *:29500"))).empty());
  const auto own = asked(kKind, of_train(held_by("python3 -u train.py")));
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].confidence, Confidence::kLikely);
  EXPECT_EQ(asked("rendezvous-incomplete", of_train(held_by("python3 -u train.py"))).size(), 1u);
}

TEST(MasterUnreachable, NamesTheRankThatFoundThePortTaken) {
  JobBuilder builder = held_by("redis-server *:29500");
  builder.log(0,
              "Traceback (most recent call last):\n  File \"/srv/train.py\", line 9, in main\n"
              "torch.distributed.DistNetworkError: port: 29500, name: EADDRINUSE\n");
  const auto findings = asked(kKind, of_train(builder));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
}

TEST(MasterUnreachable, AccusesTheRankThatWasToldAPortOfItsOwn) {
  const auto findings = asked(kKind, job()
                                         .ranks(2)
                                         .stack(kAll, kInInit)
                                         .environment(0, "MASTER_PORT", "29500")
                                         .environment(1, "MASTER_PORT", "29507")
                                         .fact("listen", {{"address", std::string("127.0.0.1")},
                                                          {"port", std::int64_t{29507}},
                                                          {"local", true},
                                                          {"listening", false}})
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

constexpr std::string_view kRetry =
    "[W1120 10:00:03.1 socket.cpp:752] [c10d] The client socket has failed to connect to "
    "[localhost]:29500 (errno: 99 - Cannot assign requested address).\n";

TEST(MasterUnreachable, AConnectionThatIsTriedAgainCountsOnlyWhereNothingFollowed) {
  const std::string log = std::string(kRetry) + std::string(kRetry);
  EXPECT_EQ(asked(kKind, job().log({}, log).build()).size(), 1u);
  EXPECT_TRUE(asked(kKind, job().log({}, log + "step 1 loss 0.4\n").build()).empty());
}

TEST(MasterUnreachable, IsSilentWhileRankZeroIsOnItsWay) {
  const auto told = [](const std::string& first, const char* store) {
    JobBuilder builder = job();
    builder.ranks(3)
        .stack(kAll, kInInit)
        .environment(kAll, "TORCHELASTIC_USE_AGENT_STORE", store)
        .stack(0, first)
        .fact("listen", {{"address", std::string("127.0.0.1")},
                         {"port", std::int64_t{29500}},
                         {"local", true},
                         {"listening", false}});
    return builder.build();
  };
  const std::string polls = "native:clock_nanosleep | py:join@/srv/nodes.py:20";
  EXPECT_TRUE(asked(kKind, told(polls, "False")).empty());
  EXPECT_EQ(asked(kKind, told(polls, "True")).size(), 1U);
  EXPECT_EQ(asked(kKind, told(kInInit, "False")).size(), 1U);
  const auto findings = asked("missing-rank", told(polls, "False"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({1, 2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.at(0).line, 20);
}

TEST(MissingRankBeforeRendezvous, IsNobodyWhileSomebodyWorksOrIsNotThere) {
  const auto told = [](const auto& change) {
    JobBuilder builder = job();
    builder.ranks(3)
        .stack(kAll, kInInit)
        .stack(1, "native:clock_nanosleep | py:join@/srv/nodes.py:20");
    change(builder);
    return asked("missing-rank", builder.build()).size();
  };
  EXPECT_EQ(told([](JobBuilder&) {}), 1U);
  EXPECT_EQ(told([](JobBuilder& builder) { builder.computing(1); }), 0U);
  EXPECT_EQ(told([](JobBuilder& builder) { builder.absent(2); }), 0U);
  EXPECT_EQ(told([](JobBuilder& builder) { builder.unobserved(2); }), 0U);
  EXPECT_EQ(told([](JobBuilder& builder) {
              builder.source("/srv/nodes.py", "def join():\n    time.sleep(12)\n", 19)
                  .waits(1, {.kind = "timer", .target = {}, .detail = {}, .limit = 12});
            }),
            0U);
}

TEST(MasterUnreachable, IsSilentWhenTheJobListens) {
  EXPECT_TRUE(asked(kKind, story(true).build()).empty());
}

TEST(MasterUnreachable, IsSilentAboutAnotherMachine) {
  EXPECT_TRUE(asked(kKind, story(false, false).build()).empty());
}

TEST(MasterUnreachable, ReadsConnectionsThatNobodyAnswers) {
  const auto findings = asked(kKind, job()
                                         .ranks(2)
                                         .stack(kAll, kInInit)
                                         .fact("connect",
                                               {{"address", std::string("10.9.9.9")},
                                                {"port", std::int64_t{29500}},
                                                {"rendezvous", true}},
                                               1)
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("10.9.9.9:29500 does not answer"), std::string::npos);
}

TEST(MasterUnreachable, KnowsTheServerThatIsAClientItself) {
  const auto told = [](const std::string& above) {
    return job()
        .ranks(2)
        .stack(kAll, above +
                         "py:_create_c10d_store{hostname='127.0.0.1'; port=31257}"
                         "@/opt/site-packages/torch/distributed/rendezvous.py:190 | "
                         "py:_tcp_rendezvous_handler{url='tcp://127.0.0.1:31257'}"
                         "@/opt/site-packages/torch/distributed/rendezvous.py:232 | " +
                         kInInit.substr(kInInit.find("py:init")))
        .build();
  };
  const auto findings =
      asked(kKind, told("native:clock_nanosleep | native:c10d::detail::TCPClient::connect | "));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("127.0.0.1:31257"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("env://"), std::string::npos);
  // In the store it waits for the other ranks, so the store is reachable.
  EXPECT_TRUE(asked(kKind, told("native:c10d::TCPStore::waitForWorkers | ")).empty());
}

std::string name_unknown(const std::string& host) {
  return "[W715 20:00:39 socket.cpp:752] [c10d] The IPv6 network addresses of (" + host +
         ", 59699) cannot be retrieved (gai error: -2 - Name or service not known).\n";
}

TEST(MasterUnreachable, AHostNameThatIsTriedAgainMayStillResolve) {
  const auto pod = asked_of_log(kKind, name_unknown("trainer-0.trainer"));
  ASSERT_EQ(pod.size(), 1u);
  EXPECT_TRUE(nothing_likely(pod));
  EXPECT_NE(pod[0].summary.find("trainer-0.trainer:59699"), std::string::npos) << pod[0].summary;
  const auto brackets = asked_of_log(kKind, name_unknown("[fd00::8]"));
  ASSERT_EQ(brackets.size(), 1u);
  EXPECT_FALSE(nothing_likely(brackets)) << "brackets never resolve";
  EXPECT_NE(brackets[0].fix.find("brackets"), std::string::npos);
  EXPECT_TRUE(asked_of_log(kKind, name_unknown("trainer-0.trainer") + "step 1 loss 0.4\n").empty());
}

TEST(MasterUnreachable, APortInUseIsNotTheCauseIfNcclStartedAfterIt) {
  const std::string in_use =
      "[W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:12211 (errno: 98 - "
      "Address already in use).\n";
  const std::string nccl = "n1:7:8 [0] NCCL INFO Using network IB\n";
  EXPECT_FALSE(nothing_likely(asked_of_log(kKind, in_use)));
  EXPECT_TRUE(nothing_likely(asked_of_log(kKind, in_use + nccl)));
  EXPECT_FALSE(nothing_likely(asked_of_log(
      kKind, in_use + nccl +
                 "torch.distributed.DistNetworkError: The server socket has failed to listen\n")));
}

TEST(MasterUnreachable, TheReasonOfSshComesBeforeTheHintOfMpirun) {
  const std::string hint = "ORTE was unable to reliably start one or more daemons.\n";
  const std::string command = "$ mpirun -H n0.pods,n1.pods python train.py\n";
  const auto cut = asked_of_log(
      kKind, command + "ssh: Could not resolve hostname n1: Name does not resolve\n" + hint);
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_NE(cut[0].summary.find("the command names n1.pods"), std::string::npos) << cut[0].summary;
  EXPECT_NE(cut[0].fix.find("orte_keep_fqdn_hostnames"), std::string::npos);
  const auto other =
      asked_of_log(kKind, "ssh: Could not resolve hostname n7: Name does not resolve\n" + hint);
  EXPECT_EQ(other.at(0).fix.find("orte_keep_fqdn_hostnames"), std::string::npos);
  EXPECT_TRUE(asked_of_log(kKind, "ssh: Could not resolve hostname github: Name does not resolve\n")
                  .empty())
      << "of a different command";
}

}  // namespace
}  // namespace ddpdoctor::detectors
