// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/wording.h"

#include <gtest/gtest.h>

namespace ddpdoctor::detectors {
namespace {

TEST(Wording, AComprehensionIsCalledByTheFunctionAroundIt) {
  EXPECT_EQ(named_function("tokenize.<locals>.<genexpr>"), "tokenize");
  EXPECT_EQ(named_function("Fit.run.<locals>.<lambda>.<locals>.<listcomp>"), "Fit.run");
  EXPECT_EQ(named_function("fit.<locals>.step"), "fit.<locals>.step");
  EXPECT_EQ(named_function("<module>"), "<module>");
  EXPECT_EQ(named_function("<genexpr>"), "<genexpr>");  // before 3.11, or of a module
  EXPECT_EQ(named_function("a.<locals>.<b>c>"), "a.<locals>.<b>c>");
}

}  // namespace
}  // namespace ddpdoctor::detectors
