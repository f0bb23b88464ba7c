// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/joined_lines.h"

#include <string>

#include <gtest/gtest.h>

namespace ddpdoctor::imports {
namespace {

const std::string kTwoWriters =
    "node1: a\nnode1: b\nnode1: c\nnode2: a\nnode2: b\nnode2: c\nnode2: d\n";

TEST(WithoutJoinedLines, BreaksBeforeTheLabelOfTheOtherWriter) {
  EXPECT_EQ(without_joined_lines(kTwoWriters + "node1:   File \"a.py\", line 3, in loadnode2: e"),
            kTwoWriters + "node1:   File \"a.py\", line 3, in load\nnode2: e");
  EXPECT_EQ(without_joined_lines(kTwoWriters + "node1: f()node2: (most recent call last):node1: g"),
            kTwoWriters + "node1: f()\nnode2: (most recent call last):\nnode1: g");
}

TEST(WithoutJoinedLines, KnowsTheLabelsOfTorchrun) {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    text += "[default0]:a\n[default1]:b\n";
  }
  EXPECT_EQ(without_joined_lines(text + "[default0]:step 3[default1]:step 3"),
            text + "[default0]:step 3\n[default1]:step 3");
  EXPECT_FALSE(without_joined_lines(text + "[default0]:[default1]:step 3"));
}

TEST(WithoutJoinedLines, LeavesNamesThatTheTextMentions) {
  for (const char* line :
       {"node1: waits for node2: no answer", "node1: tcp://node2: refused", "node1: (node2: down)",
        "node1: 'node2: x'", "node1: a node7: b", "node1: gpu-node2: lost"}) {
    EXPECT_FALSE(without_joined_lines(kTwoWriters + line)) << line;
  }
}

TEST(WithoutJoinedLines, NeedsLabelsOnNearlyEveryLine) {
  EXPECT_FALSE(without_joined_lines(kTwoWriters + "step 1\nstep 2\nnode1: in loadnode2: e"));
  EXPECT_FALSE(without_joined_lines("node1: a\nnode1: b\nnode1: c\nnode1: d\nnode1: xnode1: e"));
}

}  // namespace
}  // namespace ddpdoctor::imports
