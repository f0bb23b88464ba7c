// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/marks.h"

#include <gtest/gtest.h>

#include "tests/support/fleet_story.h"

namespace ddpdoctor::fleet {
namespace {

NodeMarks full() {
  NodeMarks marks = told("node1-abcdef", 8, 8, 1043, 77);
  marks.world_size = 64;
  marks.alarms = 2;
  marks.ended = true;
  marks.status = 137;
  marks.ranks[3].ended = true;
  marks.ranks[3].lost = 5;
  marks.ranks[3].groups[0].size = 64;
  return marks;
}

TEST(Marks, ComeBackAsTheyWere) {
  const NodeMarks marks = full();
  const auto read = read_marks(write_marks(marks));
  ASSERT_TRUE(read);
  EXPECT_EQ(write_marks(*read), write_marks(marks));
  EXPECT_EQ(read->node, "node1-abcdef");
  EXPECT_EQ(read->place, "head:29500");
  EXPECT_EQ(read->counter, 77U);
  EXPECT_EQ(read->time, 1e9);
  EXPECT_EQ(read->world_size, 64);
  EXPECT_EQ(read->status, 137);
  EXPECT_TRUE(read->ended);
  ASSERT_EQ(read->ranks.size(), 8U);
  EXPECT_EQ(read->ranks[3].rank, 11);
  EXPECT_EQ(read->ranks[3].lost, 5U);
  EXPECT_EQ(read->ranks[3].groups[0].hashes, marks.ranks[3].groups[0].hashes);
  EXPECT_EQ(read->ranks[3].groups[0].completed, 1042U);
  EXPECT_EQ(read->ranks[3].groups[0].size, 64);
}

TEST(Marks, WhatIsCutAnywhereIsRefused) {
  const std::string whole = write_marks(full());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(read_marks(whole.substr(0, length))) << length;
  }
  EXPECT_FALSE(read_marks(whole + "x"));
  EXPECT_FALSE(read_marks("anything else"));
}

TEST(Marks, EightRanksWithFourGroupsFitIntoTheirRate) {
  NodeMarks marks = full();
  for (RankMark& rank : marks.ranks) {
    rank.groups.resize(4, rank.groups.front());
  }
  EXPECT_LE(write_marks(marks).size(), 8U * 200U);  // ten times a second: 2 kB/s a rank
}

}  // namespace
}  // namespace ddpdoctor::fleet
