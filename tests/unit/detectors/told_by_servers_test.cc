// SPDX-License-Identifier: Apache-2.0
// Logs in which only a launcher, a server or a library tells the end of a process, and what only
// follows from another failure.
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

Findings of(std::string_view kind, const std::string& log) {
  return asked(kind, job().log({}, log).build());
}

const std::string kHangup =
    "torch.distributed.elastic.agent.server.api: [WARNING] Received Signals.SIGHUP death signal, "
    "shutting down workers\n";

TEST(LauncherSignal, AClosedTerminalEndsAllRanks) {
  const auto findings = of("dead-rank", "step 1\n" + kHangup);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(of("dead-rank", "SignalException: Process 7 got signal: 1\n").size(), 1U);
}

TEST(LauncherSignal, IsSilentIfARankFailedBeforeOrForCtrlC) {
  const auto failed = job().ranks(2).exited(model::RankSet{1}, 1).ended().log({}, kHangup).build();
  EXPECT_TRUE(asked("dead-rank", failed).empty());
  EXPECT_TRUE(of("dead-rank", "SignalException: Process 7 got signal: 2\n").empty());
  EXPECT_TRUE(of("dead-rank", "SignalException: Process 7 got signal: 10\n").empty());
}

const std::string kFirst =
    "Traceback (most recent call last):\n  File \"/srv/a.py\", line 3, in load\n    f()\n"
    "ValueError: no\n";
const std::string kCleanup =
    "Traceback (most recent call last):\n"
    "  File \"/opt/lib/python3.11/site-packages/vllm/executor.py\", line 5, in shutdown\n"
    "    kill()\nKeyError: 3\n";

TEST(Echoes, AFailureWhileCleaningUpFollowsFromTheFirst) {
  const auto findings = of("rank-raised", kFirst + kCleanup);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_EQ(of("rank-raised", kCleanup).size(), 1U);  // alone, it is all that is known
}

TEST(Echoes, AMessageThatRefersToAnotherOneIsNotTheCause) {
  const std::string refers =
      "Traceback (most recent call last):\n  File \"/srv/b.py\", line 9, in main\n    f()\n"
      "RuntimeError: Worker failed with error 'no', please check the stack trace above for the "
      "root cause\n";
  const auto findings = of("rank-raised", kFirst + refers);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_EQ(of("rank-raised", refers).size(), 1U);
}

TEST(Labels, NameTheProcessThatRaised) {
  const std::string label = "(EngineCore_DP0 pid=412) ";
  const auto findings = of("rank-raised", label + "Traceback (most recent call last):\n" + label +
                                              "  File \"/srv/a.py\", line 3, in load\n" + label +
                                              "    f()\n" + label + "ValueError: no\n");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].summary, "EngineCore_DP0 (pid 412) raised (a.py:3, load)");
}

TEST(WatchdogErrors, ACudaErrorWithoutATraceback) {
  const std::string line =
      "[rank1]:[E ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group "
      "watchdog thread terminated with exception: ";
  const auto findings =
      of("rank-raised", line + "CUDA error: an illegal memory access was encountered\n");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_TRUE(of("rank-raised", line + "NCCL error: remote process exited\n").empty());
}

TEST(RayResources, AWaitThatEndsByItselfIsNotReported) {
  const std::string waits =
      "Waiting for creating a placement group of specs for 10 seconds. specs=[{'GPU': 1.0}].\n";
  EXPECT_EQ(of("rendezvous-incomplete", waits + waits).size(), 1U);
  EXPECT_TRUE(of("rendezvous-incomplete", waits + "loading\nloaded\nserving\nready\nok\n").empty());
}

TEST(Announced, ARankThatNeverAnnouncesItself) {
  const std::string some =
      "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/3\n"
      "Initializing distributed: GLOBAL_RANK: 1, MEMBER: 2/3\n";
  const auto findings = of("rendezvous-incomplete", some);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_TRUE(of("rendezvous-incomplete", some + "epoch 1\n").empty());
  EXPECT_EQ(of("rendezvous-incomplete", some + "$ squeue -u me\nJOBID ST\n17 R\n").size(), 1U);
}

}  // namespace
}  // namespace ddpdoctor::detectors
