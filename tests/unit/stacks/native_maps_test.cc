// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <gtest/gtest.h>

#include "collector/stacks/target/maps.h"

namespace ddpdoctor::stacks {
namespace {

constexpr std::string_view kText =
    "55d0c0000000-55d0c0001000 r--p 00000000 fe:01 131 /usr/bin/python3.11\n"
    "55d0c0001000-55d0c0002000 r-xp 00001000 fe:01 131                       /opt/a b/x.so "
    "(deleted)\n"
    "7ffd10000000-7ffd10021000 rw-p 00000000 00:00 0                          [stack]\n"
    "7ffd10100000-7ffd10102000 rw-s 00000000 00:01 9\n";

TEST(Maps, KeepsWhatALineSays) {
  const auto maps = Maps::parse(std::string(kText));
  ASSERT_TRUE(maps.has_value());
  ASSERT_EQ(maps->all().size(), 4U);
  const Mapping& first = maps->all()[0];
  EXPECT_EQ(first.start, 0x55d0c0000000U);
  EXPECT_EQ(first.device, (0xfeULL << 32U) | 1);
  EXPECT_EQ(first.inode, 131U);
  EXPECT_TRUE(first.readable);
  EXPECT_FALSE(first.executable);
  const Mapping& second = maps->all()[1];
  EXPECT_TRUE(second.executable);
  EXPECT_TRUE(second.deleted);
  EXPECT_EQ(second.path, "/opt/a b/x.so");
  EXPECT_EQ(second.offset, 0x1000U);
  EXPECT_EQ(maps->all()[3].path, "");
}

TEST(Maps, FindsTheMappingAroundAnAddressAndNothingBetween) {
  const auto maps = Maps::parse(std::string(kText));
  ASSERT_TRUE(maps.has_value());
  EXPECT_EQ(maps->find(0x55d0c0000000U), &maps->all()[0]);
  EXPECT_EQ(maps->find(0x55d0c0001fffU), &maps->all()[1]);
  EXPECT_EQ(maps->find(0x55d0c0002000U), nullptr);
  EXPECT_EQ(maps->find(0), nullptr);
  EXPECT_EQ(maps->find(~0ULL), nullptr);
}

TEST(Maps, RefusesLinesThatAreNone) {
  for (const std::string_view text :
       {"x", "1000-2000", "2000-1000 r-xp 0 0:0 0", "1000-2000 r-xp 0 0 0", "1000-2000 rxp 0 0:0 0",
        "g000-h000 r-xp 0 0:0 0", "1000-2000 r-xp 0 0:0 z", "1000-20000000000000000 r-xp 0 0:0 0",
        "1000-2000 r-xp 0 0:0 18446744073709551616", "-2000 r-xp 0 0:0 0"}) {
    EXPECT_FALSE(Maps::parse(std::string(text)).has_value()) << text;
  }
}

TEST(Maps, KeepsTheLargestNumbers) {
  const auto maps = Maps::parse("0-ffffffffffffffff r-xp 0 0:0 18446744073709551615");
  ASSERT_TRUE(maps.has_value());
  EXPECT_EQ(maps->all()[0].end, ~0ULL);
  EXPECT_EQ(maps->all()[0].inode, ~0ULL);
}

TEST(Maps, PathsAreValidInACopy) {
  Maps copy;
  {
    const auto maps = Maps::parse(std::string(kText));
    ASSERT_TRUE(maps.has_value());
    copy = *maps;
  }
  EXPECT_EQ(copy.all()[0].path, "/usr/bin/python3.11");
}

TEST(Maps, TakesTheLaterOfTwoOverlappingLines) {
  const auto maps = Maps::parse("1000-3000 r--p 0 0:0 0 a\n2000-3000 rw-p 0 0:0 0 b\n");
  ASSERT_TRUE(maps.has_value());
  ASSERT_EQ(maps->all().size(), 1U);
  EXPECT_EQ(maps->all()[0].path, "b");
}

TEST(Maps, OfThisProcessHaveItsCodeAndStack) {
  const auto maps = Maps::of(::getpid());
  ASSERT_TRUE(maps.has_value());
  const int local = 0;
  const Mapping* const stack = maps->find(reinterpret_cast<RemoteAddress>(&local));
  ASSERT_NE(stack, nullptr);
  EXPECT_TRUE(stack->writable);
  EXPECT_FALSE(Maps::of(0x7ffffff0).has_value());
}

}  // namespace
}  // namespace ddpdoctor::stacks
