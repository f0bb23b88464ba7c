// SPDX-License-Identifier: Apache-2.0
#include "collector/model/rank_set.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

TEST(RankSet, IsSortedAndUnique) {
  EXPECT_EQ(RankSet({3, 1, 3, 2}).values(), (std::vector<Rank>{1, 2, 3}));
  RankSet set{5};
  set.insert(1);
  set.insert(5);
  EXPECT_EQ(set, (RankSet{1, 5}));
  set.erase(5);
  set.erase(7);
  EXPECT_EQ(set, RankSet{1});
}

TEST(RankSet, PrintsRangesAndSaysHowMany) {
  EXPECT_EQ(RankSet({0, 1, 2, 4}).ranges(), "0-2,4");
  EXPECT_EQ(RankSet({0, 1, 2, 4}).said(), "ranks 0-2,4");
  EXPECT_EQ(RankSet({0, 2}).said(), "ranks 0 and 2");
  EXPECT_EQ(RankSet({1, 9, 17, 25, 33}).said(), "ranks 1-33 step 8");
  EXPECT_EQ(RankSet({1, 9, 17, 25, 34}).said(), "ranks 1,9,17,25,34");
  EXPECT_EQ(RankSet{3}.said(), "rank 3");
  EXPECT_EQ(RankSet().said(), "no rank");
}

TEST(RankSet, KnowsUnionDifferenceAndIntersection) {
  const RankSet a{0, 1, 2};
  const RankSet b{2, 3};
  EXPECT_EQ(a.united(b), (RankSet{0, 1, 2, 3}));
  EXPECT_EQ(a.minus(b), (RankSet{0, 1}));
  EXPECT_EQ(a.common(b), RankSet{2});
  EXPECT_TRUE(a.contains(1));
  EXPECT_FALSE(a.contains(3));
}

}  // namespace
}  // namespace ddpdoctor::model
