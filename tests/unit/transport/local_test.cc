// SPDX-License-Identifier: Apache-2.0
#include "collector/transport/local.h"

#include <gtest/gtest.h>

#include "collector/transport/inbox.h"

namespace ddpdoctor::transport {
namespace {

using std::chrono::milliseconds;

TEST(Subjects, StarIsOneWordAndArrowIsTheRest) {
  EXPECT_TRUE(matches("a.*.c", "a.b.c"));
  EXPECT_TRUE(matches("a.>", "a.b.c"));
  EXPECT_FALSE(matches("a.*", "a.b.c"));
  EXPECT_FALSE(matches("a.>", "a"));
  EXPECT_FALSE(matches("a.b", "a.c"));
  EXPECT_FALSE(matches("a.b.c", "a.b"));
}

TEST(Subjects, AnyTextBecomesOneWord) {
  EXPECT_EQ(subject_word("node1.cluster:29500"), "node1-cluster-29500");
  EXPECT_EQ(subject_word(""), "-");
  EXPECT_EQ(subject_word("a b>*"), "a-b--");
}

TEST(LocalTransport, WhoSubscribedHearsAndOthersDoNot) {
  LocalServer server;
  const auto one = server.connect();
  const auto two = server.connect();
  ASSERT_TRUE(one->subscribe("job.*.marks"));
  ASSERT_TRUE(two->publish("job.a.marks", "hello", "back"));
  ASSERT_TRUE(two->publish("job.a.other", "unheard", ""));
  const auto packet = one->next(milliseconds(0));
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->data, "hello");
  EXPECT_EQ(packet->reply, "back");
  EXPECT_FALSE(packet->kept);
  EXPECT_FALSE(one->next(milliseconds(0)));
  EXPECT_FALSE(two->next(milliseconds(0)));
}

TEST(LocalTransport, TheNewestOfEachSubjectIsKeptForWhoComesLate) {
  LocalServer server;
  const auto node = server.connect();
  ASSERT_TRUE(node->keep("*.marks"));
  ASSERT_TRUE(node->publish("a.marks", "old", ""));
  ASSERT_TRUE(node->publish("a.marks", "new", ""));
  ASSERT_TRUE(node->publish("a.word", "gone", ""));
  const auto late = server.connect();
  ASSERT_TRUE(late->replay("*.*"));
  const auto packet = late->next(milliseconds(0));
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->data, "new");
  EXPECT_TRUE(packet->kept);
  EXPECT_FALSE(late->next(milliseconds(0)));
}

TEST(Inbox, HoldsABoundedNumberOfBytesAndCountsWhatItDropped) {
  Inbox inbox;
  const std::string large(std::size_t{100} << 20U, 'x');
  for (int i = 0; i < 3; ++i) {
    inbox.put({.subject = std::to_string(i), .reply = {}, .data = large, .kept = false});
  }
  EXPECT_EQ(inbox.dropped(), 1U);
  EXPECT_EQ(inbox.take(milliseconds(0))->subject, "1");
}

}  // namespace
}  // namespace ddpdoctor::transport
