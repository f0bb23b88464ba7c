// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/reaching.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

/// The result of the test in the line with "TEST" that leads to the line with "HERE".
std::optional<bool> leading(const char* source, const char* condition) {
  const Lines lines = lines_of(source);
  return result_leading_to(lines, line_with(lines, "TEST"), condition, line_with(lines, "HERE"));
}

TEST(Reaching, IntoASuiteTakesItsTest) {
  EXPECT_EQ(leading("if a:  # TEST\n  x()  # HERE\n", "a"), true);
  EXPECT_EQ(leading("if a:\n  y()\nelif b:  # TEST\n  x()  # HERE\n", "b"), true);
  EXPECT_EQ(leading("if a:  # TEST\n  y()\nelse:\n  x()  # HERE\n", "a"), false);
  EXPECT_EQ(leading("if a:\n  y()\nelse:  # TEST\n  x()  # HERE\n", "a"), false);
  EXPECT_EQ(leading("while a:  # TEST\n  x()  # HERE\n", "a"), true);
}

TEST(Reaching, PastAnExitTakesTheOppositeOfItsTest) {
  EXPECT_EQ(leading("def f():\n  if a:  # TEST\n    return\n  x()  # HERE\n", "a"), false);
  EXPECT_EQ(leading("for i in n:\n  if a:  # TEST\n    continue\n  x()  # HERE\n", "a"), false);
}

TEST(Reaching, TakesTheTestOfThisIteration) {
  EXPECT_EQ(leading("for i in n:\n  if a:  # TEST\n    x()  # HERE\n    break\n", "a"), true);
}

TEST(Reaching, IsNotShownByALineThatBothResultsLeadTo) {
  EXPECT_EQ(leading("if a:  # TEST\n  y()\nx()  # HERE\n", "a"), std::nullopt);
  EXPECT_EQ(leading("for i in a:  # TEST\n  x()  # HERE\n", "a"), std::nullopt);
}

TEST(Reaching, OfSeveralTestsOnOneLineTakesTheNamedOne) {
  EXPECT_EQ(leading("x() if a else y()  # TEST HERE\n", "a"), std::nullopt);
  EXPECT_EQ(leading("if a and b:  # TEST\n  x()  # HERE\n", "a and b"), true);
}

}  // namespace
}  // namespace ddpdoctor::program
