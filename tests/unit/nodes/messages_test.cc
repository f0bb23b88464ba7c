// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/messages.h"

#include <gtest/gtest.h>

namespace ddpdoctor::nodes {
namespace {

std::vector<Message> heard(std::string_view bytes, std::size_t piece = 7) {
  std::vector<Message> out;
  Lines lines;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    lines.feed(bytes.substr(at, piece), [&out](std::string_view line) {
      if (auto message = read_message(line, "s1")) {
        out.push_back(std::move(*message));
      }
    });
  }
  return out;
}

TEST(Messages, AnyBytesComeBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
  }
  const auto messages = heard(message_line("s1", "problem", {all, "", "a b"}));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].word, "problem");
  EXPECT_EQ(messages[0].arguments, (std::vector<std::string>{all, "", "a b"}));
}

TEST(Messages, WhatALoginShellWritesIsPassedOver) {
  const std::string bytes =
      "Welcome to node1\r\nlast login: " + message_line("s1", "hello", {"1"}) +
      "Warning\n0: " + message_line("s1", "end", {"3"}).substr(1) + "bye";
  const auto messages = heard(bytes);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].word, "hello");
  EXPECT_EQ(messages[1].word, "end");
}

TEST(Messages, AnotherSessionIsNotOurs) {
  EXPECT_TRUE(heard(message_line("s2", "hello", {"1"})).empty());
  EXPECT_TRUE(heard("ddpdoctor-node/1 s1\nddpdoctor-node/2 s1 hello\n").empty());
}

TEST(Messages, ALineWithoutEndCostsNoMemoryAndNotTheNextOne) {
  const std::string bytes = std::string(5'000'000, 'x') + message_line("s1", "hello", {"1"});
  EXPECT_EQ(heard(bytes, 65536).size(), 1U);
}

TEST(Messages, DataOfEveryLength) {
  for (std::size_t length : {0U, 1U, 2U, 3U, 4U, 5999U, 6000U, 6001U, 50'000U}) {
    std::string bytes(length, '\0');
    for (std::size_t i = 0; i < length; ++i) {
      bytes[i] = static_cast<char>(i * 37);
    }
    std::string data;
    std::string size;
    for (const Message& message : heard(data_lines("s1", bytes), 1000)) {
      if (message.word == "data") {
        data += message.arguments.at(0);
      } else {
        size = message.arguments.at(0);
      }
    }
    EXPECT_EQ(size, std::to_string(length));
    EXPECT_EQ(decoded(data), bytes) << length;
  }
}

TEST(Messages, WhatIsNoDataIsRefused) {
  for (const char* text : {"A", "AB!=", "=AAA", "A===", "AA=A", "AAA\xff"}) {
    EXPECT_FALSE(decoded(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace ddpdoctor::nodes
