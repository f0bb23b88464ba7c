// SPDX-License-Identifier: Apache-2.0
// Times are passed in: no test waits.
#include "collector/fleet/job_state.h"

#include <gtest/gtest.h>

#include "tests/support/fleet_story.h"

namespace ddpdoctor::fleet {
namespace {

constexpr double kStart = 1000;

/// Two nodes of two ranks each.
class Story {
 public:
  JobState state{Limits{}};
  double now = kStart;

  bool node1(std::uint32_t calls, std::uint32_t odd = 0) {
    return state.hear(told("one", 0, 2, calls, ++counter_, odd), now, 1e9);
  }
  bool node2(std::uint32_t calls, std::uint32_t odd = 0) {
    return state.hear(told("two", 2, 2, calls, ++counter_, odd), now, 1e9);
  }
  std::optional<Reason> reason() {
    const auto found = state.suspicion(now);
    return found ? std::optional(found->reason) : std::nullopt;
  }

 private:
  std::uint64_t counter_ = 0;
};

TEST(JobState, AJobThatMovesIsNoReasonToLook) {
  Story job;
  for (std::uint32_t calls = 1; calls < 600; calls += 3) {
    job.node1(calls);
    job.node2(calls + 2);
    job.now += 0.5;
    EXPECT_FALSE(job.reason()) << calls;
  }
}

TEST(JobState, NobodyMovingIsLookedAtLessAndLess) {
  Story job;
  int looks = 0;
  job.node1(5);
  job.node2(5);
  for (int i = 0; i < 2 * 300; ++i) {
    job.now += 0.5;
    job.node1(5);
    job.node2(5);
    looks += job.reason() == Reason::kStill ? 1 : 0;
  }
  EXPECT_EQ(looks, 4);  // after 30, 60, 120 and 240 s
}

TEST(JobState, OneRankThatMovesIsAJobThatMoves) {
  Story job;
  job.node2(5);
  for (std::uint32_t i = 1; i < 200; ++i) {
    job.now += 0.5;
    job.node1(i);
    job.node2(5);
    EXPECT_FALSE(job.reason());
  }
}

TEST(JobState, CallsThatDifferAreSeenAtOnceAndOnce) {
  Story job;
  job.node1(20);
  job.node2(20, 20);
  EXPECT_FALSE(job.reason());
  job.now += 0.6;
  const auto found = job.state.suspicion(job.now);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reason, Reason::kMismatch);
  EXPECT_NE(found->text.find("#20"), std::string::npos) << found->text;
  job.node1(20);
  job.node2(20, 20);
  job.now += 1;
  EXPECT_FALSE(job.reason());
}

TEST(JobState, RanksThatWereNotHeardAtTheSameCallAreComparedAtTheLastMultipleOf16) {
  Story job;
  job.node1(60);
  job.node2(50, 40);
  job.now += 0.6;
  EXPECT_EQ(job.reason(), Reason::kMismatch);
}

TEST(JobState, AnotherLifeOfARankIsNotComparedWithTheFormer) {
  Story job;
  job.node1(20);
  job.node2(20);
  NodeMarks again = told("one", 0, 2, 3, 1000);
  for (RankMark& rank : again.ranks) {
    rank.start_ticks = 9;
    rank.groups[0].hashes.newest.fill(77);
  }
  job.state.hear(again, job.now, 1e9);
  job.now += 0.6;
  EXPECT_FALSE(job.reason());
}

TEST(JobState, ANodeThatIsNotHeardIsNamedOnce) {
  Story job;
  job.node1(5);
  job.node2(5);
  job.now += 3;
  job.node1(5);
  const auto found = job.state.suspicion(job.now);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reason, Reason::kSilent);
  EXPECT_NE(found->text.find("two (ranks 2 and 3)"), std::string::npos) << found->text;
  job.now += 1;
  job.node1(6);
  EXPECT_FALSE(job.reason());
}

TEST(JobState, WhenNobodyIsHeardNobodyIsSilent) {
  Story job;
  job.node1(5);
  job.node2(5);
  job.now += 100;
  EXPECT_FALSE(job.reason());
}

TEST(JobState, WhoWasDeafHoldsNothingAgainstANode) {
  Story job;
  job.node1(5);
  job.node2(5);
  job.now += 100;
  job.state.was_deaf(job.now);
  job.node1(5);
  EXPECT_FALSE(job.reason());
}

TEST(JobState, RepeatedAndReorderedMessagesChangeNothing) {
  Story job;
  NodeMarks old = told("one", 0, 2, 5, 1);
  ASSERT_TRUE(job.state.hear(told("one", 0, 2, 9, 2), job.now, 1e9));
  EXPECT_FALSE(job.state.hear(old, job.now, 1e9));
  EXPECT_FALSE(job.state.hear(told("one", 0, 2, 9, 2), job.now, 1e9));
  EXPECT_EQ(job.state.calls(), 18U);
}

TEST(JobState, AProofOfOneNodeIsAReason) {
  Story job;
  job.node1(5);
  NodeMarks proof = told("one", 0, 2, 5, 50);
  proof.alarms = 1;
  job.state.hear(proof, job.now, 1e9);
  job.now += 0.6;
  EXPECT_EQ(job.reason(), Reason::kProvable);
  EXPECT_FALSE(job.reason());
}

TEST(JobState, TheEndIsSaidWhenAllHaveEnded) {
  Story job;
  job.node1(5);
  job.node2(5);
  for (const char* const name : {"one", "two"}) {
    NodeMarks ended = told(name, name == std::string("one") ? 0 : 2, 2, 5, 90);
    ended.ended = true;
    EXPECT_FALSE(job.reason());
    job.state.hear(ended, job.now, 1e9);
  }
  EXPECT_EQ(job.reason(), Reason::kEnded);
  EXPECT_FALSE(job.reason());
}

TEST(JobState, ANodeThatFailsWhileOthersRunIsAReason) {
  Story job;
  job.node1(5);
  job.node2(5);
  NodeMarks failed = told("two", 2, 2, 5, 90);
  failed.ended = true;
  failed.status = 1;
  job.state.hear(failed, job.now, 1e9);
  job.now += 0.6;
  job.node1(5);
  EXPECT_EQ(job.reason(), Reason::kProvable);
}

TEST(JobState, ARankThatRunsElsewhereNowTakesTheSilentNodesPlace) {
  Story job;
  job.node1(5);
  job.node2(5);
  job.now += 10;
  job.node1(6);
  job.state.hear(told("three", 2, 2, 1, 500), job.now, 1e9);
  EXPECT_EQ(job.state.nodes().size(), 2U);
  EXPECT_FALSE(job.state.nodes().contains("two"));
}

TEST(JobState, AClockThatIsAnHourOffIsKnown) {
  Story job;
  NodeMarks off = told("one", 0, 2, 5, 1);
  off.time = 1e9 + 3600;
  job.state.hear(off, job.now, 1e9 + 0.2);
  EXPECT_NEAR(job.state.nodes().at("one").ahead, 3600, 0.5);
}

TEST(JobState, RanksThatNoNodeSpeaksOfAreKnown) {
  Story job;
  NodeMarks marks = told("one", 0, 2, 5, 1);
  marks.world_size = 4;
  job.state.hear(marks, job.now, 1e9);
  EXPECT_EQ(job.state.unheard_ranks(), (std::vector<int>{2, 3}));
}

TEST(JobState, TwoJobsUnderOneNameAreSeen) {
  Story job;
  job.node1(5);
  EXPECT_TRUE(job.state.other_job().empty());
  NodeMarks other = told("two", 2, 2, 5, 1);
  other.place = "elsewhere:1";
  job.state.hear(other, job.now, 1e9);
  EXPECT_NE(job.state.other_job().find("elsewhere:1 on two"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::fleet
