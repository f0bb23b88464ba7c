// SPDX-License-Identifier: Apache-2.0
// The decisions that a function may have made after a line, and the calls that only one branch
// makes.
#include "collector/program/questions/choices.h"

#include <string>

#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

std::string said(const std::vector<Node>& calls) {
  std::string out;
  for (const Node call : calls) {
    out += (out.empty() ? "" : " ") + call.one_line();
  }
  return out.empty() ? "-" : out;
}

/// "x: f() / -; …" for the decisions after the line with `# HERE`; without one, for the function
/// that has line 1.
std::string choices(std::string_view text) {
  const SourceText lines = source(text);
  const bool here = text.find("# HERE") != std::string_view::npos;
  const int line = here ? line_with(lines, "# HERE") : 0;
  std::string out;
  for (const Choice& one :
       behind(lines, index_of(lines).function_at(here ? line : 1), line).choices) {
    out += (out.empty() ? "" : "; ") + one.decision.text + ": " + said(one.if_taken) + " / " +
           said(one.if_not) + (one.returns ? "" : " lost") + (one.led_here ? " here" : "") +
           (one.once ? " once" : "");
  }
  return out;
}

TEST(Choices, HaveCallsOfTheirOwn) {
  EXPECT_EQ(choices("if x:\n  f()\nelse:\n  g()\nh()  # HERE\n"), "x: f() / g() once");
  EXPECT_EQ(choices("if x:\n  f()\nh()\n"), "x: f() / - once");
  EXPECT_EQ(choices("y = f() if x else 0\nh()  # HERE\n"), "x: f() / - once");
  EXPECT_EQ(choices("y = [f(a) for a in l]\nh()  # HERE\n"), "l: f(a) / h() here");
}

TEST(Choices, ThatSkipTheRestOfAnIterationLeaveItsCallsOut) {
  EXPECT_EQ(choices("for a in l:\n  if x:\n    continue\n  f()\nh()  # HERE\n"),
            "l: f() / h() here; x: - / f()");
  EXPECT_EQ(choices("def m():\n  if x:\n    return\n  f()\n"), "x: - / f() once");
}

TEST(Choices, OfAnExceptionLeaveOutWhatComesAfterIt) {
  EXPECT_EQ(choices("try:\n  f()\n  g()\nexcept E:\n  pass\nh()  # HERE\n"), "E: - / f() g() once");
  EXPECT_EQ(choices("try:\n  f()\nexcept E:\n  raise\nh()  # HERE\n"), "");
}

TEST(Choices, AheadOfALineAreMadeOnlyWhereItIsPassedAgain) {
  EXPECT_EQ(choices("h()  # HERE\nif x:\n  f()\n"), "");
  EXPECT_EQ(choices("while go():\n  h()  # HERE\n  if x:\n    f()\n"),
            "go(): go() h() f() / - lost here; x: f() / -");
}

TEST(Choices, ThatEndInAnErrorAreNone) {
  EXPECT_EQ(choices("if x:\n  raise E(g())\nh()  # HERE\n"), "");
}

TEST(Choices, KnowWhetherOneWayLeadsToTheLine) {
  EXPECT_EQ(choices("if x:\n  h()  # HERE\n"), "x: h() / - lost here once");
}

}  // namespace
}  // namespace ddpdoctor::program
