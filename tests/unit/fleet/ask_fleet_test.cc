// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/ask_fleet.h"

#include <string>

#include <gtest/gtest.h>

#include "collector/transport/local.h"

namespace ddpdoctor::fleet {
namespace {

TEST(AskFleet, DoesNotWaitForANodeThatHasBecomeSilent) {
  transport::LocalServer server;
  const auto connection = server.connect();
  int asked = 0;
  const auto answers = ask_fleet(
      *connection, "job", {"dead"}, {.deadline = 5, .gather = 5}, [](const transport::Packet&) {},
      [&asked](const std::string& node) {
        EXPECT_EQ(node, "dead");
        return ++asked == 3;
      });
  EXPECT_EQ(asked, 3) << "it waited until the deadline, although the node had become silent";
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].node, "dead");
  EXPECT_FALSE(answers[0].capture);
  EXPECT_FALSE(answers[0].problem.what.empty());
}

}  // namespace
}  // namespace ddpdoctor::fleet
