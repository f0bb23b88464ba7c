// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/program/questions/exceptions.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

/// "helper: test", joined by " | ", for the line with HERE.
std::string tests_in(const std::string& text) {
  const Lines lines = lines_of(text);
  std::string out;
  for (const NoneTest& one : none_tests_before(lines, line_with(lines, "HERE"))) {
    out += (out.empty() ? "" : " | ") + one.helper + ": " + one.test.condition;
  }
  return out;
}

TEST(NoneTests, AreThoseOfAHelpersAnswer) {
  EXPECT_EQ(tests_in("def step(x):\n  loss = self.loss(x)\n  if loss is None:\n    return\n"
                     "  loss.backward()  # HERE\n"),
            "loss: loss is None");
  EXPECT_EQ(tests_in("for x in data:\n  out = run(f(x))\n  if not out: continue\n"
                     "  out.backward()  # HERE\n"),
            "run: not out");
  EXPECT_EQ(tests_in("def step(x):\n  y = run(x)\n  if y is not None:\n    y.backward()  # HERE\n"),
            "run: y is not None");
}

TEST(NoneTests, AreNoOptionsNoSumsAndNoLaterTests) {
  EXPECT_EQ(tests_in("def step(x, hook):\n  if hook is None:\n    return\n  g(x)  # HERE\n"), "");
  EXPECT_EQ(tests_in("def step(x):\n  y = f(x) + 1\n  if y is None:\n    return\n  g(y)  # HERE\n"),
            "");
  EXPECT_EQ(tests_in("def step(x):\n  y = f(x)\n  if y is not None:\n    return\n  g()  # HERE\n"),
            "");
  EXPECT_EQ(tests_in("def step(x):\n  y = f(x)\n  g()  # HERE\n  if y is None:\n    return\n"), "");
}

std::string clause(const std::string& text) {
  const auto found = clause_that_answers_none(lines_of(text), "loss");
  return found ? found->text : "";
}

TEST(NoneAnswers, ComeFromAClauseForFailures) {
  EXPECT_EQ(clause("def loss(x):\n  try:\n    return f(x)\n  except ValueError as e:\n"
                   "    print(e)\n    return None\n"),
            "except ValueError as e");
  EXPECT_EQ(clause("def loss(x):\n  try: return f(x)\n  except: return\n"), "except");
}

TEST(NoneAnswers, AreNoOtherAnswersOrFunctionsOrEndsOfData) {
  EXPECT_EQ(clause("def loss(x):\n  try:\n    return f(x)\n  except ValueError:\n    return 0\n"),
            "");
  EXPECT_EQ(clause("def other(x):\n  try:\n    return f(x)\n  except ValueError:\n    return\n"),
            "");
  EXPECT_EQ(clause("def loss(x):\n  try:\n    return next(x)\n  except StopIteration:\n"
                   "    return None\n"),
            "");
  EXPECT_EQ(clause("def loss(x):\n  try:\n    return f(x)\n  except ValueError:\n    raise\n"), "");
}

}  // namespace
}  // namespace ddpdoctor::program
