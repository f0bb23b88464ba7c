// SPDX-License-Identifier: Apache-2.0
#include "base/encoding.h"

#include <string>

#include <gtest/gtest.h>

namespace ddpdoctor::base {
namespace {

TEST(Encoding, TakesTheMarkOfUtf8Off) {
  EXPECT_EQ(as_utf8("\xef\xbb\xbf{\"a\": 1}"), "{\"a\": 1}");
  EXPECT_EQ(as_utf8("\xef\xbb\xbf"), "");
  EXPECT_EQ(as_utf8("a\xef\xbb\xbf"), "a\xef\xbb\xbf");  // elsewhere it is text
}

TEST(Encoding, ReadsUtf16OfBothOrders) {
  EXPECT_EQ(as_utf8(std::string("\xff\xfeP\0r\0\n\0", 8)), "Pr\n");
  EXPECT_EQ(as_utf8(std::string("\xfe\xff\0P\0r\0\n", 8)), "Pr\n");
  // ä, the euro sign and a character above U+FFFF, which has two surrogates.
  EXPECT_EQ(as_utf8(std::string("\xff\xfe\xe4\0\xac\x20\x3d\xd8\x00\xde", 10)),
            "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(Encoding, HalvesOfCharactersAreNoText) {
  EXPECT_EQ(as_utf8(std::string("\xff\xfe\x3d\xd8P\0", 6)), "\xef\xbf\xbdP");
  EXPECT_EQ(as_utf8(std::string("\xff\xfe\x00\xdeP\0", 6)), "\xef\xbf\xbdP");
  EXPECT_EQ(as_utf8(std::string("\xff\xfeP\0\x3d\xd8", 6)), "P");  // truncated
  EXPECT_EQ(as_utf8(std::string("\xff\xfeP\0r", 5)), "P");
}

TEST(Encoding, BytesWithoutAMarkStayAsTheyAre) {
  EXPECT_EQ(as_utf8(std::string("\x80\x02}q\0", 5)), std::string("\x80\x02}q\0", 5));
  EXPECT_EQ(as_utf8(""), "");
  EXPECT_EQ(as_utf8("\xff"), "\xff");
}

}  // namespace
}  // namespace ddpdoctor::base
