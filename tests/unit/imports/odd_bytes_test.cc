// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/odd_bytes.h"

#include <string>

#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

using namespace std::string_literals;

TEST(OddBytes, AreRemovedFromALog) {
  EXPECT_EQ(without_odd_bytes("a\n\0b\x01\x7f\n"s), "a\nb\n");
  EXPECT_EQ(without_odd_bytes("1%\b\b20%\n\b\n"s), "20%\n\n");
  EXPECT_EQ(without_odd_bytes("ä\bb"s), "b");
  EXPECT_FALSE(without_odd_bytes("a\tb\r\n\x1b[0mä\n"s));
}

TEST(OddBytes, ATextWithAFewZerosIsALog) {
  const std::string text =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 1\n";
  EXPECT_TRUE(is_log(text + "\0"s + text, "out.txt"));
  EXPECT_FALSE(is_log(std::string(64, '\0') + text + std::string(64, '\x01') + text, "out.bin"));
  const auto job = read_log("a\0b\nKeyError: 1\n"s);
  ASSERT_EQ(job.logs.size(), 1U);
  EXPECT_EQ(job.logs[0].text.find('\0'), std::string::npos);
}

TEST(OddBytes, Utf16IsDecoded) {
  EXPECT_EQ(from_utf16("\xff\xfe"
                       "a\0\n\0\xac\x20=\xd8\x80\xde"s),
            "a\n€🚀");
  EXPECT_EQ(from_utf16("\xfe\xff\0a\0\n"s), "a\n");
  EXPECT_EQ(from_utf16("s\0t\0e\0p\0 \0a\0n\0d\0 \0e\0"s), "step and e");
  EXPECT_EQ(from_utf16("\xff\xfe\0\xd8x\0"s), "\xEF\xBF\xBDx");
  EXPECT_FALSE(from_utf16("step 1\n"));
  EXPECT_FALSE(from_utf16(std::string(32, '\0')));
}

}  // namespace
}  // namespace ddpdoctor::imports
