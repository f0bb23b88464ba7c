// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/conversation.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"

namespace ddpdoctor::nodes {
namespace {

/// What a node sends for `bytes`, line by line.
std::vector<std::string> lines_of(const std::string& bytes) {
  std::vector<std::string> out;
  const std::string whole = data_lines("s1", bytes);
  for (const std::string_view line : base::split(whole, '\n')) {
    if (!line.empty()) {
      out.emplace_back(line);
    }
  }
  return out;
}

class Talk {
 public:
  std::vector<std::string> sent;
  Conversation talk{"node1", "s1", [this](const std::string& text) { sent.push_back(text); }};

  void hear(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      talk.hear(line);
    }
  }
};

TEST(Conversation, AClockIsAskedForFourTimesAndThenTheNodeIsReady) {
  Talk one;
  one.talk.hear(message_line("s1", "hello", {"5", "host1", "job"}));
  for (int i = 1; i <= 4; ++i) {
    ASSERT_EQ(one.sent.back(), "ping " + std::to_string(i) + "\n");
    EXPECT_FALSE(one.talk.ready());
    one.talk.hear(message_line("s1", "pong", {std::to_string(i), "2000000000"}));
    one.talk.hear(message_line("s1", "pong", {std::to_string(i), "2000000000"}));  // twice
  }
  EXPECT_TRUE(one.talk.ready());
  EXPECT_EQ(one.sent.size(), 4U);
  one.talk.go(0.5);
  one.talk.go(0.5);
  EXPECT_EQ(one.sent.back(), "go 0.500000\n");
  EXPECT_EQ(one.sent.size(), 5U);
}

TEST(Conversation, PartsMayComeInAnyOrderAndTwice) {
  std::string bytes(50000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 37);
  }
  std::vector<std::string> lines = lines_of(bytes);
  std::reverse(lines.begin(), lines.end());
  const std::vector<std::string> again(lines.begin(), lines.begin() + 3);
  lines.insert(lines.end() - 1, again.begin(), again.end());
  Talk one;
  one.hear(lines);
  ASSERT_TRUE(one.talk.over());
  EXPECT_EQ(one.talk.take().capture, bytes);
}

TEST(Conversation, WhatIsNotWholeIsDamaged) {
  std::vector<std::string> lines = lines_of(std::string(50000, 'x'));
  lines.erase(lines.begin() + 2);
  Talk one;
  one.hear(lines);
  EXPECT_FALSE(one.talk.over());
  one.talk.give_up(10, {});
  const Answer answer = one.talk.take();
  EXPECT_FALSE(answer.capture);
  EXPECT_NE(answer.problem.what.find("damaged"), std::string::npos);
}

TEST(Conversation, OtherSessionsAreNotHeard) {
  Talk one;
  one.talk.hear(message_line("s2", "hello", {"5", "host1", "job"}));
  EXPECT_TRUE(one.sent.empty());
}

}  // namespace
}  // namespace ddpdoctor::nodes
