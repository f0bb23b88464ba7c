// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/rings/generations.h"

#include <gtest/gtest.h>

namespace ddpdoctor::sources {
namespace {

/// A rank that started at one time, made a call, and ended at another (0: it is running).
Recording life(pid_t pid, int rank, double begin, double end, pid_t parent = 10) {
  Recording recording;
  recording.pid = pid;
  recording.ppid = parent;
  recording.rank = rank;
  recording.start_ticks = static_cast<std::uint64_t>(begin * 100);
  recording.calls.push_back({.sequence = 1, .operation = "all_reduce", .time = begin + 1});
  if (end > 0) {
    recording.exit = RecordedExit{.kind = "exit", .value = 1, .time = end};
  }
  return recording;
}

std::vector<pid_t> superseded(std::vector<Recording> recordings) {
  mark_superseded(recordings);
  std::vector<pid_t> out;
  for (const Recording& recording : recordings) {
    if (recording.superseded) {
      out.push_back(recording.pid);
    }
  }
  return out;
}

TEST(Generations, ARestartLeavesTheFormerRanksBehind) {
  EXPECT_EQ(superseded({life(100, 0, 5, 20), life(101, 1, 5, 19), life(200, 0, 30, 0),
                        life(201, 1, 30, 0)}),
            (std::vector<pid_t>{100, 101}));
}

TEST(Generations, ASmallerJobAfterALargerOneLeavesAllOfItBehind) {
  EXPECT_EQ(superseded({life(100, 0, 5, 20), life(101, 1, 5, 20), life(102, 2, 5, 20),
                        life(200, 0, 30, 0), life(201, 1, 30, 0)}),
            (std::vector<pid_t>{100, 101, 102}));
}

TEST(Generations, ARankThatDiedInOneLifeStays) {
  EXPECT_TRUE(superseded({life(100, 0, 5, 0), life(101, 1, 5, 9)}).empty());
}

TEST(Generations, TwoOfOneRankAtATimeAreNoRestart) {
  EXPECT_TRUE(superseded({life(100, 0, 5, 40), life(101, 0, 6, 41)}).empty());
}

TEST(Generations, ProgramsThatARankRunsInheritItsRankAndReplaceNobody) {
  EXPECT_TRUE(superseded({life(100, 0, 5, 0), life(101, 1, 5, 9), life(110, 0, 10, 11, 100),
                          life(111, 0, 12, 13, 100)})
                  .empty());
}

TEST(Generations, AHelperThatEndedWellBeforeItsRankBeganIsNoFormerLife) {
  Recording helper = life(90, 1, 5, 6);
  helper.calls.clear();
  helper.exit->value = 0;
  Recording left = life(102, 2, 5, 7);
  left.calls.clear();
  left.exit->value = 0;
  EXPECT_TRUE(superseded({helper, life(100, 0, 5, 0), left, life(101, 1, 9, 0)}).empty());
}

TEST(Generations, AnEndThatOnlyTheParentSawCounts) {
  Recording launcher;
  launcher.pid = 10;
  launcher.events.push_back({.kind = "child-exit", .time = 20, .count = 100, .peer = 9});
  EXPECT_EQ(superseded({launcher, life(100, 0, 5, 0), life(200, 0, 30, 0)}),
            (std::vector<pid_t>{100}));
}

}  // namespace
}  // namespace ddpdoctor::sources
