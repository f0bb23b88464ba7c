// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include "base/numbers.h"

namespace ddpdoctor::base {
namespace {

TEST(Ranges, JoinsNeighboursAndKeepsOutliers) {
  EXPECT_EQ(ranges({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(ranges({}), "");
}

TEST(Grouped, ThreeDigitsEach) {
  EXPECT_EQ(grouped(7), "7");
  EXPECT_EQ(grouped(1023), "1,023");
  EXPECT_EQ(grouped(402653184), "402,653,184");
}

TEST(Duration, SpeaksLikeAPerson) {
  EXPECT_EQ(duration(0.84), "0.8 s");
  EXPECT_EQ(duration(252), "4 min 12 s");
  EXPECT_EQ(duration(7260), "2 h 1 min");
  EXPECT_EQ(duration(60), "1 min");
  EXPECT_EQ(duration(7200), "2 h");
  EXPECT_EQ(duration(3 * 24 * 3600.0), "3 days");
  EXPECT_EQ(duration(99999999), "3 years");
}

TEST(Bytes, PicksTheUnit) {
  EXPECT_EQ(bytes(512), "512 B");
  EXPECT_EQ(bytes(26214400), "25 MiB");
}

TEST(Elide, NeverCutsInsideACharacter) {
  EXPECT_EQ(elide("aé", 2), "a…");
  EXPECT_EQ(elide("abc", 3), "abc");
}

TEST(Printable, EscapesControlCharactersAndBrokenUtf8) {
  EXPECT_EQ(printable("a\x1b[31m"), "a\\x1b[31m");
  EXPECT_EQ(printable("\xC3\xA9"), "é");
  EXPECT_EQ(printable("\xC3("), "\\xc3(");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("a\u202eyp.b"), "a\\u202eyp.b");
}

}  // namespace
}  // namespace ddpdoctor::base
