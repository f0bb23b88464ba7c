// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/clock_column.h"

#include <gtest/gtest.h>

namespace ddpdoctor::imports {
namespace {

TEST(ClockColumn, IsRemovedBeforeLabelsOfRanks) {
  const std::string lines =
      "18:11:01.100 step 1\n18:11:02.200 step 2\n18:11:03.300 step 3\n"
      "18:11:04.400   indented\n";
  EXPECT_EQ(without_clock_column(lines + "18:11:06.552 [rank4]: stuck"),
            "step 1\nstep 2\nstep 3\n  indented\n[rank4]: stuck");
  EXPECT_FALSE(without_clock_column(lines));  // the program's own time
}

TEST(ClockColumn, IsInNearlyAllLines) {
  EXPECT_FALSE(without_clock_column("18:11:01 [rank0]: a\nb\nc\nd\ne\n18:11:02 [rank0]: f"));
  EXPECT_FALSE(without_clock_column("18:11 [rank0]: a\n"));
  EXPECT_FALSE(without_clock_column(""));
}

}  // namespace
}  // namespace ddpdoctor::imports
