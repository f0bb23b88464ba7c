// SPDX-License-Identifier: Apache-2.0
// Integers at the ends of 64 bits. In a build with the undefined behaviour sanitizer, an overflow
// on the way to a result that fits fails as well.
#include "collector/values/arithmetic.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace ddpdoctor::values {
namespace {

constexpr std::int64_t kLeast = INT64_MIN;
constexpr std::int64_t kMost = INT64_MAX;

std::int64_t whole(std::string_view operation, std::int64_t a, std::int64_t b) {
  const Value result = binary(operation, Value::number(a), Value::number(b));
  EXPECT_EQ(result.kind, Value::Kind::kInteger) << a << operation << b;
  return result.integer;
}

TEST(Arithmetic, DividesTowardsMinusInfinity) {
  EXPECT_EQ(whole("//", -7, 2), -4);
  EXPECT_EQ(whole("%", -7, 2), 1);
  EXPECT_EQ(whole("//", 7, -2), -4);
  EXPECT_EQ(whole("%", 7, -2), -1);
  EXPECT_EQ(whole("//", -8, 2), -4);
  EXPECT_EQ(whole("%", -8, 2), 0);
}

TEST(Arithmetic, DividesTheLeastAndTheLargestNumber) {
  EXPECT_EQ(whole("//", kLeast, 63), -146402730743726601);
  EXPECT_EQ(whole("%", kLeast, 63), 55);
  EXPECT_EQ(whole("%", kLeast, kMost), kMost - 1);
  EXPECT_EQ(whole("%", kMost, kLeast), -1);
  EXPECT_EQ(whole("//", kMost, kLeast), -1);
  EXPECT_EQ(whole("%", kLeast, -1), 0);
}

}  // namespace
}  // namespace ddpdoctor::values
