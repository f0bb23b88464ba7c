// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/line_numbers.h"

#include <gtest/gtest.h>

namespace ddpdoctor::imports {
namespace {

TEST(LineNumbers, AreTakenOffIfEachLineHasTheNextOne) {
  EXPECT_EQ(without_line_numbers("[17] a\n[18] \n[19] [rank1]: b\n[20] c\n[21] d\n[22]   e\n"),
            "a\n\n[rank1]: b\nc\nd\n  e\n");
  EXPECT_EQ(without_line_numbers("    1\ta\n    2\tb\n    3\tc\n    4\td\n    5\te\n    6\tf"),
            "a\nb\nc\nd\ne\nf\n");
}

TEST(LineNumbers, StayIfOneLineHasADifferentNumber) {
  EXPECT_FALSE(without_line_numbers("[0] a\n[1] b\n[2] c\n[3] d\n[3] e\n[4] f\n[5] g\n"));
  EXPECT_FALSE(without_line_numbers("0: a\n1: b\nc\n2: d\n3: e\n4: f\n5: g\n"));
}

TEST(LineNumbers, StayInAShortListAndInsideWords) {
  EXPECT_FALSE(without_line_numbers("0: a\n1: b\n2: c\n"));
  EXPECT_FALSE(without_line_numbers("1a\n2a\n3a\n4a\n5a\n6a\n"));
}

}  // namespace
}  // namespace ddpdoctor::imports
