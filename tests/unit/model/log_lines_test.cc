// SPDX-License-Identifier: Apache-2.0
#include "collector/model/log_lines.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

TEST(LogLines, RankBeforeALineIsTakenOff) {
  for (const char* line :
       {"[rank3]: text", "[rank3]:text", "[rank: 3] text", "[RANK 3] text", "rank 3: text",
        "rank3 | text", "[default3]:text", "[1,3]<stderr>:text", "[3]<stderr>:text",
        "(rank=3) text", "2026-11-20T12:34:56.250Z 01O [rank3]: text",
        "2026-11-20T12:34:56Z stderr F rank3: text", "12:34:56  [rank3]: text",
        " 2026-11-20 12:34 [rank3]: text", "[pod/trainer-3/torch] [rank3]: text",
        "(RayTrainWorker pid=7, ip=10.0.0.1) [rank3]: text"}) {
    const LogLine read = read_log_line(line);
    EXPECT_EQ(read.rank, 3) << line;
    EXPECT_EQ(read.text, "text") << line;
  }
}

TEST(LogLines, TheInnerRankIsTheGlobalOne) {
  const LogLine read = read_log_line("[default0]:[rank8]:   File \"t.py\"");
  EXPECT_EQ(read.rank, 8);
  EXPECT_EQ(read.text, "  File \"t.py\"");
}

TEST(LogLines, TimesAreReadInOrder) {
  const LogLine a = read_log_line("2026-11-20T12:34:56.250Z [rank1]: x");
  const LogLine b = read_log_line("[2026-11-20 12:34:56,500] [rank1]: x");
  ASSERT_TRUE(a.time && b.time);
  EXPECT_DOUBLE_EQ(*b.time - *a.time, 0.25);
  EXPECT_EQ(a.rank, 1);
  EXPECT_EQ(a.text, "x");
  EXPECT_DOUBLE_EQ(*read_log_line("1970-01-02 00:00:01 x").time, 86401);
}

TEST(LogLines, SentencesKeepTheirWords) {
  for (const char* line : {"rank 3 failed", "[3] text", "3: text", "[rank] text", "[rank3 text",
                           "ranks: 3", "2026 steps", "    indented", ""}) {
    const LogLine read = read_log_line(line);
    EXPECT_FALSE(read.rank) << line;
    EXPECT_FALSE(read.time) << line;
    EXPECT_EQ(read.text, line);
  }
}

}  // namespace
}  // namespace ddpdoctor::model
