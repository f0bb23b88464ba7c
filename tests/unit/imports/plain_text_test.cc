// SPDX-License-Identifier: Apache-2.0
// Logs written for a terminal or by a CI system.
#include "collector/imports/logs/plain_text.h"

#include <gtest/gtest.h>

#include "collector/imports/logs/text_file.h"

namespace ddpdoctor::imports {
namespace {

TEST(PlainText, IsNothingForPlainLines) {
  EXPECT_FALSE(plain_text("step 1\n[rank1]: ValueError: no\n"));
}

TEST(PlainText, LosesColoursAndTitles) {
  EXPECT_EQ(plain_text("\x1b[31mValueError\x1b[0m: \x1b[1;35mno\x1b[0m\n\x1b]0;title\ax\n"),
            "ValueError: no\nx\n");
}

TEST(PlainText, LosesProgressBarsAndKeepsWhatFollowsThem) {
  EXPECT_EQ(plain_text("\r  0%|   | 0/9 [00:00<?, ?it/s]\r 10%|#  | 1/9 [00:01<00:08, 1.1s/it]"
                       "Traceback (most recent call last):\n"),
            "Traceback (most recent call last):\n");
}

TEST(PlainText, KeepsListsAndSlices) {
  EXPECT_EQ(plain_text("\x1b[0m sizes [2:3] and [7, 9] at 3 m/s ]\n"),
            " sizes [2:3] and [7, 9] at 3 m/s ]\n");
}

TEST(PlainText, RepeatsWhatTheCiPutBeforeTheLine) {
  EXPECT_EQ(plain_text("2026-11-20T12:00:00Z bar\rtext\n"),
            "2026-11-20T12:00:00Z bar\n2026-11-20T12:00:00Z text\n");
}

TEST(PlainText, LosesSectionMarkers) {
  EXPECT_EQ(plain_text("section_start:1700000000:test\r\x1b[0KRunning\n##[error]Process\n"),
            "Running\nProcess\n");
}

TEST(PlainText, GivesEveryRankItsLine) {
  EXPECT_EQ(plain_text("step 3 [rank1]: Traceback (most recent call last):\n"),
            "step 3 \n[rank1]: Traceback (most recent call last):\n");
}

TEST(PlainText, EndsWithASequenceThatIsCutOff) {
  EXPECT_EQ(plain_text("a\x1b\nb\x1b[3"), "a\nb\n");
}

TEST(PlainText, IsReadAtOnceFromAFile) {
  const auto job = read_text("\x1b[31m[rank1]: ValueError: no\x1b[0m\r\n", "ci.log");
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->logs.at(0).text.starts_with("[rank1]: ValueError: no\n"));
}

TEST(Labels, OfSrunAreRanksBehindTheTimeOfACi) {
  const auto job = read_text("2026-11-20T12:00:00Z 0: a\n2026-11-20T12:00:00Z 1: b\n", "ci.log");
  ASSERT_TRUE(job);
  EXPECT_NE(job->logs.at(0).text.find("2026-11-20T12:00:00Z [rank1]: b"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::imports
