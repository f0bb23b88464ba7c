// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

const std::string kSuccess =
    "W0414 api.py:937] Local worker group finished (WorkerState.SUCCEEDED). Waiting 300 seconds\n";
const std::string kAgent = "W0414 torch/distributed/elastic/agent/server/api.py:900] started\n";
const std::string kWarning =
    "node0:1182:1275 [0] misc/socket.cc:915 NCCL WARN Connection closed by remote peer node1\n";
const std::string kClosed = kAgent + kWarning;

Findings told(const std::string& first, const std::string& second,
              std::optional<model::Rank> second_rank = 1) {
  return asked("rank-exited",
               job().ranks(2).log(0, first).log(second_rank, second).ended().build());
}

TEST(FinishedAgents, ARankThatFinishedClosedTheConnectionOfTheOther) {
  const Findings findings = told(kClosed, kSuccess);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(FinishedAgents, AreOnlyPossibleWithoutTheirRanks) {
  const Findings findings = told(kClosed, kSuccess, std::nullopt);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
}

TEST(FinishedAgents, AreNoCauseIfTheOthersFinishedOrKeptTheirConnection) {
  EXPECT_TRUE(told(kClosed + kSuccess, kSuccess).empty());
  EXPECT_TRUE(told("step 3\n", kSuccess).empty());
  EXPECT_TRUE(told(kClosed, "step 3\n").empty());
  EXPECT_TRUE(told(kWarning, kSuccess).empty());  // perhaps the end of a healthy rank
}

}  // namespace
}  // namespace ddpdoctor::detectors
