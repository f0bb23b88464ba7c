// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "collector/program/flow/separation.h"
#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

std::string_view word(Way way) {
  switch (way) {
    case Way::kTrue:
      return "true";
    case Way::kFalse:
      return "false";
    case Way::kItem:
      return "item";
    case Way::kExhausted:
      return "exhausted";
    case Way::kRaised:
      return "raised";
    default:
      return "next";
  }
}

std::string said(const std::vector<Separating>& all) {
  std::string out;
  for (const Separating& one : all) {
    out += (out.empty() ? "" : " | ") + one.decision.text + " " + std::string(word(one.a)) + "/" +
           std::string(word(one.b));
  }
  return out;
}

/// Lines A and B are marked.
std::string separating(std::string_view text) {
  const SourceText lines = source(text);
  const int a = line_with(lines, "# A");
  return said(
      separating_decisions(lines, index_of(lines).function_at(a), a, line_with(lines, "# B")));
}

TEST(SeparatingDecisions, ChooseBetweenTwoArms) {
  EXPECT_EQ(separating("if x:\n  f()  # A\nelse:\n  g()  # B\n"), "x true/false");
  EXPECT_EQ(separating("if x:\n  f()  # A\nelif y:\n  g()  # B\n"), "x true/false | y false/true");
  EXPECT_EQ(separating("match m:\n  case 1:\n    f()  # A\n  case _:\n    g()  # B\n"),
            "1 true/false");
  EXPECT_EQ(separating("try:\n  f()  # A\n  g()  # B\nexcept E:\n  pass"), "f() raised/next");
}

TEST(SeparatingDecisions, LeadToOneOfTheLines) {
  EXPECT_EQ(separating("if x:\n  f()  # A\ng()  # B\n"), "x true/false");
  EXPECT_EQ(separating("def m():\n  if x:\n    return\n  f()  # A\ng()  # B\n"), "x false/true");
  EXPECT_EQ(separating("for b in l:\n  f()  # A\ng()  # B\n"), "l item/exhausted");
  EXPECT_EQ(separating("while n():\n  f()  # A\ng()  # B\n"), "n() true/false");
  EXPECT_EQ(separating("try:\n  h()\nexcept E:\n  f()  # A\ng()  # B\n"), "h() raised/next");
}

TEST(SeparatingDecisions, OfALoopAreTheTestsThatSkipOrLeave) {
  EXPECT_EQ(separating("for b in l:\n  f()  # A\n  if c:\n    continue\n  g()  # B\n"),
            "c true/false");
  EXPECT_EQ(separating("while True:\n  if c():\n    break\n  f()  # A\ng()  # B\n"),
            "c() false/true");
  EXPECT_EQ(separating("for b in l:\n  f()  # A\n  g()  # B\n"), "");
}

TEST(SeparatingDecisions, LieInsideExpressionsToo) {
  EXPECT_EQ(separating("rank == 0 and f()  # A\ng()  # B\n"), "rank == 0 true/false");
  EXPECT_EQ(separating("x = f() if r else None  # A\ng()  # B\n"), "r true/false");
  EXPECT_EQ(separating("x = [f(i) for i in q if i > 2]  # A\ng()  # B\n"),
            "q item/exhausted | i > 2 true/false");
}

TEST(SeparatingDecisions, PassFinallyAndWith) {
  EXPECT_EQ(separating("try:\n  if x:\n    return\n  f()  # A\nfinally:\n  g()  # B\n"),
            "x false/true");
  EXPECT_EQ(separating("with suppress(E):\n  h()\n  f()  # A\ng()  # B\n"), "h() next/raised");
}

TEST(SeparatingDecisions, FollowCallStrings) {
  const SourceText text = source(R"(
def log(x):
    if not x.ready:
        return
    gather(x)  # A

def main():
    for step in range(9):
        if step % 2:
            log(step)
        reduce(step)  # B
)");
  const int call = line_with(text, "log(step)");
  const CallString a = {{&text, "log", line_with(text, "# A")}, {&text, "main", call}};
  const CallString b = {{&text, "main", line_with(text, "# B")}};
  EXPECT_EQ(said(separating_decisions(a, b)), "step % 2 true/false | not x.ready false/true");
  EXPECT_TRUE(separating_decisions(a, a).size() == 0);
  EXPECT_TRUE(separating_decisions({{nullptr, "f", 1}}, {{nullptr, "g", 2}}).empty());
}

std::string changed(std::string_view text, std::string_view path, Way way) {
  const SourceText lines = source(text);
  const int line = line_with(lines, "# A");
  const Scope& scope = index_of(lines).function_at(line);
  const auto decisions = decisions_of(index_of(lines), scope);
  std::string out;
  for (const Binding& one : changes_between(lines, scope, decisions.front(), way, line, path)) {
    out += (out.empty() ? "" : " ") + std::to_string(one.line);
  }
  return out;
}

TEST(Changes, LieOnAWayFromTheDecisionToTheLine) {
  EXPECT_EQ(changed("if x:\n  f()  # A\nx = 1\n", "x", Way::kTrue), "");
  EXPECT_EQ(changed("if x:\n  x = 0\n  f()  # A\n", "x", Way::kTrue), "2");
  EXPECT_EQ(changed("if x:\n  x = 0\nelse:\n  f()  # A\n", "x", Way::kFalse), "");
  EXPECT_EQ(changed("while x:\n  f()  # A\n  x = 0\n", "x", Way::kTrue), "");
  EXPECT_EQ(changed("if x:\n  for i in q:\n    f()  # A\n    x.pop()\n", "x", Way::kTrue), "4");
  EXPECT_EQ(changed("if self.c.x:\n  self.c = n()\n  f()  # A\n", "self.c.x", Way::kTrue), "2");
  EXPECT_EQ(changed("if x:\n  x = f(a and b)  # A\n", "x", Way::kTrue), "");
}

TEST(Flow, OfEndlessAndBrokenCodeHasAnEnd) {
  for (const char* text : {"while True:\n  f()\n", "def f():\n  while 1:\n    while 1:\n      pass",
                           "break\ncontinue\nreturn\n", "try:\n", "finally:\n  x()", "[for x in",
                           "async with a: await b", "x = [i for i in [j for j in k if l] if m]"}) {
    const SourceText lines = source(text);
    for (const Scope& scope : index_of(lines).scopes()) {
      const Flow& flow = flow_of(lines, scope);
      EXPECT_GE(flow.graph.points().size(), 2U) << text;
      EXPECT_TRUE(flow.dependence.postdominates(FlowGraph::kExit, FlowGraph::kEntry)) << text;
    }
  }
}

}  // namespace
}  // namespace ddpdoctor::program
