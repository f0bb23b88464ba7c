// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/knots.h"

#include <gtest/gtest.h>

namespace ddpdoctor::graph {
namespace {

using Knots = std::vector<std::vector<std::size_t>>;

ChoiceNode any(std::vector<std::size_t> enders) {
  return {.goes_on = false, .needs_all = false, .enders = std::move(enders)};
}

ChoiceNode all(std::vector<std::size_t> enders) {
  return {.goes_on = false, .needs_all = true, .enders = std::move(enders)};
}

TEST(Knots, ACircleIsOne) {
  EXPECT_EQ(knots({any({1}), any({0})}), (Knots{{0, 1}}));
}

TEST(Knots, OneWhoGoesOnFreesAllThatMayBeServedByIt) {
  EXPECT_TRUE(knots({any({1, 2}), any({0}), ChoiceNode{}}).empty());
}

TEST(Knots, WhoNeedsAllIsNotFreedByOne) {
  EXPECT_EQ(knots({all({1, 2}), any({0}), ChoiceNode{}}), (Knots{{0, 1}}));
}

TEST(Knots, WhoOnlyWaitsForAKnotIsNoMember) {
  EXPECT_EQ(knots({any({1}), any({0}), any({0})}), (Knots{{0, 1}}));
  EXPECT_EQ(stuck_for_ever({any({1}), any({0}), any({0})}), (std::vector<bool>{true, true, true}));
}

TEST(Knots, TwoThatDoNotWaitForEachOtherAreTwo) {
  EXPECT_EQ(knots({any({2}), any({3}), any({0}), any({1}), any({0, 1})}), (Knots{{0, 2}, {1, 3}}));
}

TEST(Knots, OneWhomNobodyCanHelpIsOneAlone) {
  EXPECT_EQ(knots({any({}), any({0})}), (Knots{{0}}));
}

TEST(Knots, PlacesThatDoNotExistHelpNobody) {
  EXPECT_EQ(knots({any({7})}), (Knots{{0}}));
}

}  // namespace
}  // namespace ddpdoctor::graph
