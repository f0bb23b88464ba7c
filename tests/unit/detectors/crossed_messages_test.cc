// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

using model::CallState;
using tests::CallStory;

CallStory message(const std::string& operation, model::Rank peer, std::int64_t sequence,
                  std::int64_t count, CallState state) {
  return {.operation = operation,
          .sequence = sequence,
          .site = operation + "_all@/srv/train.py:" + std::to_string(10 + sequence),
          .count = count,
          .dtype = "float32",
          .peer = peer,
          .state = state};
}

/// Rank 0 sends these sizes to rank 1, which receives those; the first `done` of each are complete.
JobBuilder told(const std::vector<std::int64_t>& sent, const std::vector<std::int64_t>& received,
                std::size_t done = 0) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl");
  for (std::size_t i = 0; i < sent.size(); ++i) {
    builder.call(0, message("send", 1, static_cast<std::int64_t>(i) + 1, sent[i],
                            i < done ? CallState::kCompleted : CallState::kStarted));
  }
  for (std::size_t i = 0; i < received.size(); ++i) {
    builder.call(1, message("recv", 0, static_cast<std::int64_t>(i) + 1, received[i],
                            i < done ? CallState::kCompleted : CallState::kStarted));
  }
  return builder.complete_history();
}

TEST(CrossedMessages, NamesBothSidesAndTheirOrders) {
  const Findings findings = asked("crossed-messages", told({4, 8}, {8, 4}).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_NE(findings[0].summary.find("rank 0 sends 4 float32 to rank 1, but rank 1 is receiving 8"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_NE(findings[0].evidence.at(0).text.find("rank 1 receives 8 float32, 4 float32"),
            std::string::npos)
      << findings[0].evidence.at(0).text;
  EXPECT_NE(findings[0].fix.find("NCCL ignores tags"), std::string::npos);
  ASSERT_EQ(findings[0].locations.size(), 2U);
}

TEST(CrossedMessages, CountsFromTheFirstMessageThatDiffers) {
  const Findings findings = asked("crossed-messages", told({2, 4, 8}, {2, 8, 4}, 1).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].summary.find("2 float32"), std::string::npos) << findings[0].summary;
}

TEST(CrossedMessages, SeesTagsThatNcclIgnores) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").complete_history();
  model::JobModel crossed = told({4, 4}, {4, 4}).build();
  int tag = 1;
  for (model::CollectiveCall& call : crossed.collectives) {
    call.tag = call.rank == 0 ? tag++ : 3 - static_cast<int>(call.sequence);
  }
  EXPECT_EQ(asked("crossed-messages", crossed).size(), 1U);
  for (model::CollectiveCall& call : crossed.collectives) {
    call.tag = static_cast<int>(call.sequence);
  }
  EXPECT_TRUE(asked("crossed-messages", crossed).empty()) << "one order";
}

TEST(CrossedMessages, OfOneSizeAlone) {
  const Findings findings = asked("crossed-messages", told({4}, {8}).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].fix.find("same size"), std::string::npos);
}

TEST(CrossedMessages, AreNoneWhereGlooAcceptsThem) {
  JobBuilder builder = told({4, 8}, {8, 8});
  builder.backend("gloo");
  EXPECT_TRUE(asked("crossed-messages", builder.build()).empty()) << "a buffer of the largest size";
  JobBuilder crossed = told({4, 8}, {8, 4});
  crossed.backend("gloo");
  EXPECT_EQ(asked("crossed-messages", crossed.build()).size(), 1U);
}

TEST(CrossedMessages, PairByTagOnGloo) {
  model::JobModel by_tag = told({4, 8}, {8, 4}).build();
  by_tag.groups[0].backend = "gloo";
  for (model::CollectiveCall& call : by_tag.collectives) {
    call.tag = static_cast<int>(*call.count);
  }
  EXPECT_TRUE(asked("crossed-messages", by_tag).empty());
}

TEST(CrossedMessages, AreOnlyPossibleWhereOlderOnesMayBeLost) {
  model::JobModel partial = told({4}, {8}).build();
  partial.history_complete = false;
  EXPECT_TRUE(nothing_likely(asked("crossed-messages", partial)));
}

TEST(CrossedMessages, AreNotReadWhereARankReceivesFromAnybody) {
  JobBuilder builder = told({4, 8}, {8, 4});
  CallStory anybody = message("recv", 0, 3, 4, CallState::kStarted);
  anybody.peer.reset();
  builder.call(1, anybody);
  EXPECT_TRUE(asked("crossed-messages", builder.build()).empty());
}

TEST(CrossedMessages, IsSilentOnTheHealthyTwin) {
  EXPECT_TRUE(asked("crossed-messages", told({4, 8}, {4, 8}).build()).empty());
  EXPECT_TRUE(asked("crossed-messages", told({4, 8}, {4}).build()).empty()) << "not posted yet";
  EXPECT_TRUE(asked("crossed-messages", moving(told({4, 8}, {8, 4}).build())).empty());
  EXPECT_TRUE(asked("crossed-messages", told({4, 8, 4}, {8, 4, 4}, 3).build()).empty())
      << "all are over: nobody waits";
}

TEST(CrossedMessages, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("crossed-messages", told({4, 8}, {8, 4}).build())),
            essence(asked("crossed-messages", records_reversed(told({4, 8}, {8, 4}).build()))));
}

/// Stacks alone: rank 0 waits in a call with rank 1, rank 1 in one with rank 0.
model::JobModel stacks_in(const std::string& first, const std::string& second) {
  const std::string torch = "@/v/torch/distributed/distributed_c10d.py:1 | ";
  JobBuilder builder = job();
  builder.ranks(2);
  builder.stack(0, "py:" + first + torch + "py:give@/srv/train.py:7");
  builder.stack(1, "py:" + second + torch + "py:take@/srv/train.py:9");
  return builder.looked_once().build();
}

TEST(CrossedMessages, StacksOfASendAndItsOnlyReceiverThatBothWait) {
  const Findings findings = asked("crossed-messages", stacks_in("send", "recv"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].locations.size(), 2U);
  EXPECT_TRUE(asked("crossed-messages", stacks_in("send", "send")).empty());
  EXPECT_TRUE(asked("crossed-messages", stacks_in("recv", "barrier")).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
