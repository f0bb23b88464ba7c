// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/as_pasted.h"

#include <gtest/gtest.h>

#include "collector/imports/logs/plain_text.h"

namespace ddpdoctor::imports {
namespace {

TEST(RowsAsLines, KeepsTheCellOfTheLogWithoutTheTimeOfTheService) {
  EXPECT_EQ(rows_as_lines("2026-06-10 15:08:12.104 | [2026-06-10 07:08:12 TP0] step | \n"
                          "-- | -- | --\n"
                          "  |   | 2026-06-10 15:08:41.759 | Traceback (most recent call last): |\n"
                          "  |   | 2026-06-10 15:08:41.759 | ValueError: a | b |"),
            "[2026-06-10 07:08:12 TP0] step\n"
            "Traceback (most recent call last):\n"
            "ValueError: a | b\n");
}

TEST(RowsAsLines, KeepsTheTimeIfTheLinesHaveNone) {
  EXPECT_EQ(rows_as_lines("| 2026-06-10 15:08:12 | step 1 |\n"
                          "|---|:--:|\n"
                          "| 2026-06-10 15:08:13 | step 2 |"),
            "2026-06-10 15:08:12 step 1\n2026-06-10 15:08:13 step 2\n");
}

TEST(RowsAsLines, NeedsTheRowOfDashes) {
  EXPECT_FALSE(rows_as_lines("trainer-0 | step 1\ntrainer-1 | step 1\n----------\n"));
  EXPECT_FALSE(rows_as_lines("epoch 1 | loss 2.1\nepoch 2 | loss 2.0\n"));
}

TEST(OldestFirst, TurnsAnExportThatShowsTheNewestFirst) {
  EXPECT_EQ(oldest_first("2026-06-10 15:08:15 d\n  more of d\n2026-06-10 15:08:14 c\n"
                         "2026-06-10 15:08:13 b\n2026-06-10 15:08:12 a\n"),
            "2026-06-10 15:08:12 a\n\n2026-06-10 15:08:13 b\n2026-06-10 15:08:14 c\n"
            "2026-06-10 15:08:15 d\n  more of d\n");
}

TEST(OldestFirst, LeavesOneLaterTime) {
  EXPECT_FALSE(
      oldest_first("2026-06-10 15:08:15 d\n2026-06-10 15:08:14 c\n2026-06-10 15:08:13 b\n"
                   "2026-06-10 15:08:12 a\n2026-06-10 15:08:16 e\n"));
}

TEST(WithIndentedFrames, RestoresTheIndentationOfATraceback) {
  EXPECT_EQ(with_indented_frames("Traceback (most recent call last):\n"
                                 "File \"/srv/a.py\", line 7, in main\n"
                                 "step(x)\n"
                                 "^^^^^^^\n"
                                 "File \"/srv/b.py\", line 9, in step\n"
                                 "raise ValueError(x)\n"
                                 "ValueError: 3\n"
                                 "done"),
            "Traceback (most recent call last):\n"
            "  File \"/srv/a.py\", line 7, in main\n"
            "    step(x)\n"
            "    ^^^^^^^\n"
            "  File \"/srv/b.py\", line 9, in step\n"
            "    raise ValueError(x)\n"
            "ValueError: 3\n"
            "done");
}

TEST(WithIndentedFrames, ReadsEachRankByItself) {
  EXPECT_EQ(with_indented_frames("[rank0]: Traceback (most recent call last):\n"
                                 "[rank1]: step 7\n"
                                 "[rank0]: File \"/srv/a.py\", line 7, in main\n"
                                 "[rank1]: step 8\n"
                                 "[rank0]: go()\n"
                                 "[rank0]: KeyError: 1"),
            "[rank0]: Traceback (most recent call last):\n"
            "[rank1]: step 7\n"
            "[rank0]:   File \"/srv/a.py\", line 7, in main\n"
            "[rank1]: step 8\n"
            "[rank0]:     go()\n"
            "[rank0]: KeyError: 1");
}

TEST(WithIndentedFrames, LeavesWhatIsIndented) {
  EXPECT_FALSE(
      with_indented_frames("Traceback (most recent call last):\n"
                           "  File \"/srv/a.py\", line 7, in main\n"
                           "    go()\n"
                           "KeyError: 1\n"));
}

TEST(WithoutColours, KnowsOtherSpellingsOfTheEscapeCharacter) {
  EXPECT_EQ(without_colours("#033[2m#033[36m(Worker pid=7)#033[0m hello"), "(Worker pid=7) hello");
  EXPECT_EQ(without_colours("^[[31merror^[[0m: x[0]"), "error: x[0]");
  EXPECT_EQ(without_colours("\\u001b[1;31mno\\u001b[0m"), "no");
}

TEST(WithoutColours, LeavesTextInBrackets) {
  EXPECT_FALSE(without_colours("issue #033[a], column ^[[x]"));
}

}  // namespace
}  // namespace ddpdoctor::imports
