// SPDX-License-Identifier: Apache-2.0
#include "collector/preflight/name_service.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

namespace ddpdoctor::preflight {
namespace {

constexpr std::chrono::seconds kPatience{20};

TEST(NameService, KnowsThisMachine) {
  const Names names = ask_getent("localhost", kPatience);
  if (!names.asked) {
    GTEST_SKIP() << "no getent here";
  }
  EXPECT_TRUE(
      std::any_of(names.addresses.begin(), names.addresses.end(),
                  [](const std::string& one) { return one == "::1" || one.starts_with("127."); }));
}

TEST(NameService, GivesEachAddressOnce) {
  const Names names = ask_getent("127.0.0.1", kPatience);
  if (!names.asked) {
    GTEST_SKIP() << "no getent here";
  }
  EXPECT_EQ(names.addresses, std::vector<std::string>{"127.0.0.1"});
}

TEST(NameService, TakesNoNameForAnOption) {
  EXPECT_FALSE(ask_getent("--help", kPatience).asked);
}

TEST(NameService, NothingIsKnownWhenPatienceIsOver) {
  EXPECT_FALSE(ask_getent("localhost", std::chrono::milliseconds(0)).asked);
}

}  // namespace
}  // namespace ddpdoctor::preflight
