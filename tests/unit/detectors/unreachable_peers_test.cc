// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

Findings told(const std::string& text) {
  model::JobModel job;
  job.logs.push_back({.rank = {}, .text = text});
  return asked("master-unreachable", job);
}

TEST(UnreachablePeers, NamesTheInterfaceThatWasAskedFor) {
  const auto findings = told(
      "[trainer3]:node9:1958:1958 [3] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth2\n"
      "[trainer0|0]:ncclInternalError: Internal check failed.\n"
      "[trainer0|0]:ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) "
      "nor AF_INET6(10)\n");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].summary.find("NCCL_SOCKET_IFNAME is eth2"), std::string::npos);
}

TEST(UnreachablePeers, ReadsTheWordsOfEveryRelease) {
  for (
      const char* line :
      {"a:7:9 [0] include/socket.h:360 WARN Call to connect failed : Connection timed out",
       "a:7:9 [0] include/socket.h:344 WARN Socket creation failed : Address family not supported "
       "by protocol",
       "a:7:9 [0] include/socket.h:403 NCCL WARN Net : Connect to 10.0.0.4<4> failed : No route "
       "to host",
       "a:7:9 [6] misc/socket.cc:533 NCCL WARN socketPollConnect: Connect to 10.0.0.4<5> returned "
       "113(No route to host) errno 115(Operation now in progress)",
       "a:7:9 [6] misc/socket.cc:9 NCCL WARN socketStartConnect: exceeded timeouts (3)",
       "a:7:9 [6] os/linux.cc:302 NCCL WARN ncclOsSocketPollConnect: connect to 10.0.0.4<5> failed "
       ": No route to host",
       "a:7:9 [6] NCCL INFO socketPollConnect: connect returned No route to host, retrying (34/34) "
       "after sleep for 3400 msec",
       "a:7:7 [0] NCCL WARN Bootstrap : no socket interface found"}) {
    EXPECT_EQ(told(std::string(line) + "\n").size(), 1U) << line;
  }
}

JobBuilder using_address(const std::string& one, const std::string& other) {
  JobBuilder builder;
  for (const auto& [host, address] : {std::pair("a", one), std::pair("b", other)}) {
    builder.fact(
        "nccl-interface",
        {{"host", std::string(host)}, {"interface", std::string("eth0")}, {"address", address}});
  }
  return builder;
}

TEST(UnreachablePeers, KnowsOneAddressOnTwoHosts) {
  const auto findings =
      asked("master-unreachable", using_address("172.17.0.2", "172.17.0.2").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_NE(findings[0].summary.find("172.17.0.2 on hosts a and b"), std::string::npos);
  EXPECT_TRUE(asked("master-unreachable", using_address("10.0.0.1", "10.0.0.2").build()).empty());
}

TEST(UnreachablePeers, IsSilentOnAnAddressWithWhichTheJobRan) {
  EXPECT_TRUE(asked("master-unreachable", using_address("127.0.0.1", "127.0.0.1")
                                              .log({},
                                                   "a:7:9 [0] NCCL INFO Init COMPLETE\nstep 1\n"
                                                   "step 2\nstep 3\nstep 4\n")
                                              .build())
                  .empty());
}

const std::string kGlooWarns =
    "[rank0]:[W ProcessGroupGloo.cpp:721] Warning: Unable to resolve hostname to a (local) "
    "address. "
    "Using the loopback address as fallback. Manually set the network interface to bind to with "
    "GLOO_SOCKET_IFNAME. (function operator())\n";

TEST(UnreachablePeers, KnowsGloosLoopbackInAJobOfSeveralNodes) {
  for (const char* nodes : {"+ torchrun --nnodes=2 fit.py\n", "  min_nodes        : 2\n",
                            "[launch.py:164:main] nnodes=2, num_local_procs=4, node_rank=1\n",
                            "(A pid=7, ip=10.0.0.1) a\n(A pid=9, ip=10.0.0.2) b\n"}) {
    const auto warned = told(nodes + kGlooWarns);
    ASSERT_EQ(warned.size(), 1U) << nodes;
    EXPECT_EQ(warned[0].confidence, Confidence::kPossible);
    EXPECT_EQ(warned[0].waiting, model::RankSet({0}));
    EXPECT_NE(warned[0].fix.find("GLOO_SOCKET_IFNAME"), std::string::npos);
  }
  EXPECT_TRUE(told(kGlooWarns).empty());
  EXPECT_TRUE(told("+ torchrun --nnodes=1 fit.py\n" + kGlooWarns).empty());
  EXPECT_TRUE(
      told("+ torchrun --nnodes=2 fit.py\n" + kGlooWarns + "step 1\nstep 2\nstep 3\nstep 4\n")
          .empty());
}

TEST(UnreachablePeers, ReadsConnectionsOfGlooToTheLoopback) {
  for (const char* line :
       {"[rank3]: RuntimeError: Gloo connectFullMesh failed with "
        "[../third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: "
        "Connection refused, remote=[127.0.0.1]:14215",
        "[rank3]: RuntimeError: [/opt/gloo/gloo/transport/tcp/pair.cc:799] connect "
        "[127.0.1.1]:60817: Connection refused",
        "[E1] ERROR failed to connect, willRetry=1, retry=2, retryLimit=3, rank=1, size=2, "
        "local=[127.0.0.1]:123, remote=[127.0.0.1]:345, error=SO_ERROR: Connection refused"}) {
    const auto findings = told(std::string("--nnodes 2\n") + line + "\n");
    ASSERT_EQ(findings.size(), 1U) << line;
    EXPECT_EQ(findings[0].confidence, Confidence::kLikely) << line;
    EXPECT_TRUE(told(std::string("--nnodes 1\n") + line + "\n").empty()) << line;
  }
  const std::string no_address =
      "[rank0]: RuntimeError: Gloo connectFullMesh failed with [../pair.cc:144] no error\n";
  EXPECT_EQ(told("--nnodes 2\n" + kGlooWarns + no_address).at(0).confidence, Confidence::kLikely);
  EXPECT_TRUE(told("--nnodes 2\n" + no_address).empty());
  EXPECT_TRUE(told("--nnodes 2\nRuntimeError: [pair.cc:598] Connection closed by peer "
                   "[127.0.0.1]:4711\n")
                  .empty());
}

TEST(UnreachablePeers, NamesTheRanksThatGlooCouldNotConnectIfNothingElseFailed) {
  const auto failed = [](int rank) {
    return fmt::format(
        "[rank{}]:[E212 02:14:01.17 ProcessGroupGloo.cpp:143] Gloo connectFullMesh failed with "
        "[../pair.cc:144] no error\n",
        rank);
  };
  const auto findings = told(failed(0) + failed(2));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 2}));
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_TRUE(told(failed(0)).empty()) << "one rank";
  EXPECT_TRUE(told("[rank1]: Traceback (most recent call last):\n"
                   "[rank1]:   File \"/srv/train.py\", line 4, in main\n[rank1]:     load()\n"
                   "[rank1]: ValueError: no such shard\n" +
                   failed(0) + failed(2))
                  .empty());
}

TEST(UnreachablePeers, IsSilentOnTheWordsOfOtherPrograms) {
  for (const char* line :
       {"WARN Connect to database failed : dial tcp 10.0.0.5:5432: connection refused",
        "[Warning] WARN Socket creation failed : Permission denied",
        "mqtt: WARN Call to connect failed : timed out",
        "proxy INFO Call to connect returned 111, retrying"}) {
    EXPECT_TRUE(told(std::string(line) + "\n").empty()) << line;
  }
}

TEST(UnreachablePeers, IsSilentOnAConnectionThatWasMade) {
  EXPECT_TRUE(told("a:7:9 [6] NCCL INFO socketPollConnect: connect returned Connection refused, "
                   "retrying (1/34) after sleep for 100 msec\n"
                   "a:7:9 [6] NCCL INFO comm 0x5 rank 0 nranks 2 - Init COMPLETE\n")
                  .empty());
  EXPECT_TRUE(told("a:7:7 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.4<0>\n"
                   "a:7:7 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0\n")
                  .empty());
}

const std::string kBtl =
    "[node2][[38971,1],3][btl_tcp_endpoint.c:796:mca_btl_tcp_endpoint_complete_connect] connect() "
    "to 172.17.0.1 failed: Connection refused (111)\n";

TEST(UnreachablePeers, KnowsABridgeToWhichOpenMpiConnects) {
  const auto findings = told(kBtl);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].waiting, model::RankSet{3});
  EXPECT_NE(findings[0].fix.find("btl_tcp_if_exclude docker0,lo"), std::string::npos);
}

TEST(UnreachablePeers, FindsTheInterfaceOfAnAddress) {
  const std::string line =
      "  Message:    connect() to 192.168.122.1:1024 failed\n  Error:      Operation now in "
      "progress (115)\n";
  for (const char* listing :
       {"virbr0    Link encap:Ethernet  HWaddr 02:42\n          inet addr:192.168.122.1  Bcast:0\n",
        "virbr0: flags=4099<UP>  mtu 1500\n        inet 192.168.122.1  netmask 255.255.255.0\n",
        "3: virbr0: <BROADCAST> mtu 1500\n    inet 192.168.122.1/24 brd 1 scope global virbr0\n"}) {
    const auto findings = told(listing + line);
    ASSERT_EQ(findings.size(), 1U) << listing;
    EXPECT_NE(findings[0].summary.find("192.168.122.1 (virbr0)"), std::string::npos);
  }
  const auto unknown = told(line);
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_EQ(unknown[0].confidence, Confidence::kPossible) << "the process may have ended";
}

TEST(UnreachablePeers, IsSilentIfMpiWentOn) {
  EXPECT_TRUE(told(kBtl + "step 1\nstep 2\nstep 3\nstep 4\n").empty());
  EXPECT_TRUE(told("curl: connect() to 10.0.0.1 failed\n").empty());
}

TEST(UnreachablePeers, KnowsRanksWithoutATransport) {
  for (const char* line :
       {"At least one pair of MPI processes are unable to reach each other for",
        "[1700.1] [n1:77:0] select.c:455  UCX  ERROR   no active messages transport to <no debug "
        "data>: Unsupported operation"}) {
    EXPECT_EQ(told(std::string(line) + "\n").size(), 1U) << line;
  }
}

TEST(UnreachablePeers, AreOfTheAdapterIfInfiniBandRefusesTheConnection) {
  model::JobModel job;
  job.logs.push_back({.rank = {},
                      .text =
                          "a:7:9 [0] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_modify_qp failed "
                          "with error No such device\n"});
  EXPECT_TRUE(asked("master-unreachable", job).empty());
  ASSERT_EQ(asked("fabric-fault", job).size(), 1U);
}

}  // namespace
}  // namespace ddpdoctor::detectors
