// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/program/questions/exceptions.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

std::string clause(const std::string& text) {
  const Lines lines = lines_of(text);
  const auto found = failure_clause_at(lines, line_with(lines, "HERE"));
  return found ? found->text : "";
}

TEST(FailureClauses, AreThoseThatCatchFailures) {
  EXPECT_EQ(clause("try:\n  f()\nexcept ValueError as e:  # HERE\n  g()\n"),
            "except ValueError as e");
  EXPECT_EQ(clause("try: f()\nexcept: return  # HERE\n"), "except");
  EXPECT_EQ(clause("try:\n  f()\nexcept StopIteration:  # HERE\n  g()\n"), "");
  EXPECT_EQ(clause("try:\n  f()\nexcept ImportError:  # HERE\n  g()\n"), "");
}

TEST(FailureClauses, AreNoOtherLines) {
  EXPECT_EQ(clause("try:\n  f()  # HERE\nexcept ValueError:\n  g()\n"), "");
  EXPECT_EQ(clause("try:  # HERE\n  f()\nexcept ValueError:\n  g()\n"), "");
}

}  // namespace
}  // namespace ddpdoctor::program
