// SPDX-License-Identifier: Apache-2.0
// Findings of a job of which only a log is known.
#include <string>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "rank-raised";

TEST(RankRaisedInALog, TheLinesOfAnErrorOfCudaAreNoWorkThatGoesOn) {
  const auto findings = asked_of_log(kKind, R"([rank1]: Traceback (most recent call last):
[rank1]:   File "/srv/a.py", line 3, in load
[rank1]:     x.item()
[rank1]: RuntimeError: CUDA error: device-side assert triggered
[rank1]: CUDA kernel errors might be asynchronously reported at some other API call.
[rank1]: For debugging consider passing CUDA_LAUNCH_BLOCKING=1
[rank1]: Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
)");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].confidence, Confidence::kPossible);
}

TEST(RankRaisedInALog, TheLinesOfItsMessageDoNotShowThatTheRankContinued) {
  const std::string raised =
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"/srv/a.py\", line 3, in load\n[rank1]:     check()\n"
      "[rank1]: ValueError: the batch does not fit\n[rank1]:   - tokens: 9\n[rank1]: \n"
      "[rank1]: shorten it\n[rank1]: or raise the limit\n";
  EXPECT_EQ(asked_of_log(kKind, raised).size(), 1U);
  // Here the launcher writes the prefix, and the rank continued.
  EXPECT_TRUE(asked_of_log(kKind, "[rank1]: begin\n" + raised).empty());
}

TEST(RankRaisedInALog, IsSilentWhereTheStepsOfALogGoOn) {
  std::string steps;
  for (int i = 0; i < 9; ++i) {
    steps += "step " + std::to_string(i) + " loss 0.5\n";
  }
  const std::string failed =
      "Traceback (most recent call last):\n  File \"/srv/a.py\", line 3, in push\n    post()\n"
      "ConnectionError: no\n";
  EXPECT_TRUE(asked_of_log(kKind, steps + failed + steps).empty());
  EXPECT_FALSE(asked_of_log(kKind, steps + failed).empty());
  EXPECT_FALSE(asked_of_log(kKind, steps + failed + "bye\nrank 0 ended\n").empty());
}

/// Rank 1 of 3 raised; the watchdogs of `waiting` end the wait of their ranks.
std::string raised_before_timeouts(const std::vector<int>& waiting) {
  std::string out = "All distributed processes registered. Starting with 3 processes\n";
  out += "Traceback (most recent call last):\n  File \"/srv/a.py\", line 3, in step\n    f()\n";
  out += "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
  for (const int rank : waiting) {
    out += "[E ProcessGroupNCCL.cpp:456] [Rank " + std::to_string(rank) +
           "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, "
           "OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=1800000) ran for 1800001 "
           "milliseconds before timing out.\n";
  }
  return out;
}

model::JobModel with_timeouts_of(const std::vector<int>& waiting) {
  JobBuilder builder = job();
  builder.group("0", {0, 1, 2}, "default_pg").log({}, raised_before_timeouts(waiting));
  for (const int rank : waiting) {
    builder.call(rank,
                 {.operation = "all_reduce", .sequence = 9, .state = model::CallState::kStarted});
  }
  return builder.build();
}

// Old logs have no labels; a rank that still waits when its watchdog ends it did not raise.
TEST(RankRaisedInALog, IsOfTheOnlyRankThatDidNotWait) {
  const auto findings = asked(kKind, with_timeouts_of({0, 2}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(asked("missing-rank", with_timeouts_of({0, 2})).empty());
  for (const Finding& one : asked(kKind, with_timeouts_of({0}))) {
    EXPECT_TRUE(one.culprits.empty());
  }
}

TEST(NewGroupSubsetInALog, IsAGroupThatFewRanksCalled) {
  const auto roll_call = [](const char* came, const char* absent) {
    JobBuilder builder = job();
    builder.fact("roll-call", {{"barrier", std::string("new_group (barrier 4 of the store)")},
                               {"line", std::string("Waiting in store based barrier")},
                               {"came", std::string(came)},
                               {"absent", std::string(absent)},
                               {"first", false}});
    return builder.build();
  };
  const auto findings = asked("new-group-subset", roll_call("0", "1-3"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_TRUE(asked("missing-rank", roll_call("0", "1-3")).empty());
  EXPECT_TRUE(asked("new-group-subset", roll_call("0-2", "3")).empty());
  ASSERT_EQ(asked("missing-rank", roll_call("0-2", "3")).size(), 1U);
  EXPECT_EQ(asked("missing-rank", roll_call("0-2", "3"))[0].culprits, model::RankSet({3}));
}

TEST(RankRaisedInALog, ReadsWhyNcclFailed) {
  const auto failed = [](const std::string& last) {
    return "Traceback (most recent call last):\n  File \"/srv/a.py\", line 3, in f\n    g()\n"
           "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:275, internal error\n"
           "ncclInternalError: Internal check failed.\nLast error:\n" +
           last + "\n";
  };
  EXPECT_TRUE(
      asked(kKind, job().log(0, failed("Net : Connection closed by remote peer a<1>")).build())
          .empty());
  EXPECT_FALSE(asked(kKind, job().log(0, failed("Failed to CUDA calloc 6 bytes")).build()).empty());
}

TEST(RankRaisedInALog, AWaitThatEndedIsToldByWhoWaited) {
  const std::string text = R"(Traceback (most recent call last):
  File "/srv/a.py", line 3, in get
    raise TimeoutError
TimeoutError

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/a.py", line 9, in main
    raise TimeoutError("RPC call to run timed out.") from e
TimeoutError: RPC call to run timed out.
)";
  EXPECT_TRUE(asked_of_log(kKind, text).empty());
}

TEST(RankRaisedInALog, TorchsWarningOfABarrierIsNoFindingOfItsOwn) {
  const std::string warning =
      "[rank1]:[W210 07:30:12.0 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 1]  using GPU 1 "
      "to perform barrier as devices used by this process are currently unknown.\n";
  EXPECT_TRUE(asked_of_log("wrong-device", warning).empty());
  EXPECT_FALSE(
      asked("wrong-device", job().ranks(2).stack(kAll, kInBarrier).log({}, warning).build())
          .empty());
}

TEST(RankRaisedInALog, AWarningOfAHangDoesNotExplainAKill) {
  const std::string warning =
      "[rank1]:[W210 07:30:12.0 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 1]  using GPU 1 "
      "to perform barrier as devices used by this process are currently unknown.\n";
  const auto told = [&warning](JobBuilder builder) {
    return asked("wrong-device", builder.log({}, warning).ended().build());
  };
  EXPECT_TRUE(told(job().ranks(2).killed(1, 9)).empty());
  const Findings raised = told(job().ranks(2).exited(1, 1));
  ASSERT_EQ(raised.size(), 1U);
  EXPECT_EQ(raised[0].confidence, Confidence::kPossible);
}

TEST(RankRaisedInALog, ASystemErrorOfNcclBelowATimeoutIsItsEffect) {
  const std::string timeout =
      "[E ProcessGroupNCCL.cpp:587] [Rank 3] Watchdog caught collective operation timeout: "
      "WorkNCCL(OpType=ALLREDUCE, "
      "Timeout(ms)=1800000) ran for 1802917 milliseconds before timing out.\n";
  const std::string raised =
      "Traceback (most recent call last):\n  File \"/srv/a.py\", line 3, in f\n    g()\n"
      "RuntimeError: NCCL error in: NCCLUtils.hpp:136, unhandled system error\n";
  EXPECT_TRUE(asked_of_log(kKind, timeout + raised).empty());
  EXPECT_FALSE(asked_of_log(kKind, raised + timeout).empty());
}

const std::string kHubWaits = "still waiting to acquire lock on /c/.locks/m/4f.lock\n";

TEST(StaleFileLockInALog, NamesTheFilesThatItWaitedForUntilItsEnd) {
  const std::string other = "still waiting to acquire lock on /c/.locks/m/7a.lock\n";
  const auto findings = asked_of_log(
      "stale-file-lock", "Fetching 13 files\n" + kHubWaits + other + kHubWaits +
                             "^CTraceback (most recent call last):\n  File \"a.py\", line 8\n"
                             "KeyboardInterrupt\n");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("2 lock files, /c/.locks/m/4f.lock"), std::string::npos);
  EXPECT_TRUE(findings[0].culprits.empty());
}

TEST(StaleFileLockInALog, IsSilentIfTheOutputContinuesOrTheProcessWaitedOnce) {
  EXPECT_TRUE(asked_of_log("stale-file-lock", kHubWaits).empty());
  EXPECT_TRUE(asked_of_log("stale-file-lock", kHubWaits + kHubWaits + "loaded\n").empty());
}

std::string traced(const std::string& parent, const std::string& child) {
  return "$ strace -p 20\nProcess 20 attached\n" + parent +
         "\n^CProcess 20 detached\n <detached ...>\n$ strace -p 31 -s 64\nProcess 31 attached\n" +
         child + "\n^CProcess 31 detached\n <detached ...>\n";
}

TEST(ProcessDeadlockInATrace, AParentThatWaitsForAChildThatWrites) {
  const auto findings =
      asked_of_log("process-deadlock", traced("wait4(31, ", "write(1, \"text\\n\", 5"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("process 20 is waiting for its child 31 to exit"),
            std::string::npos);
  EXPECT_EQ(asked_of_log("process-deadlock",
                         "$ strace -f -p 20\n[pid 20] wait4(31, <unfinished ...>\n"
                         "[pid 31] write(2, \"x\", 1) = 1\n[pid 31] write(2, \"x\", 1\n")
                .size(),
            1U);
}

TEST(ProcessDeadlockInATrace, IsSilentForAnotherChildAnotherFileOrACallThatReturned) {
  for (const auto& [parent, child] :
       {std::pair("wait4(32, ", "write(1, \"text\", 4"), std::pair("wait4(31, ", "read(0, "),
        std::pair("wait4(31, ", "write(7, \"text\", 4"),
        std::pair("wait4(31, ", "write(1, \"text\", 4) = 4"),
        std::pair("wait4(31, [{WIFEXITED(s)}], 0, NULL) = 31", "write(1, \"text\", 4")}) {
    EXPECT_TRUE(asked_of_log("process-deadlock", traced(parent, child)).empty()) << parent << child;
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
