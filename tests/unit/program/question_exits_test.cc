// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/exits.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

std::string ways_out(const char* source) {
  const Lines lines = lines_of(source);
  std::string out;
  for (const WayOut& way : ways_out_before(lines, line_with(lines, "HERE"))) {
    out += (out.empty() ? "" : " | ") + std::to_string(way.line) + " " + way.condition;
  }
  return out;
}

TEST(WaysOut, AreTheStatementsThatLeaveBeforeTheLine) {
  EXPECT_EQ(
      ways_out("def f():\n  if a: return\n  if b:\n    print()\n    sys.exit(0)\n  x()  # HERE\n"
               "  if c:\n    return\n"),
      "5 b | 2 a");
}

TEST(WaysOut, OfALoopOrAnotherFunctionAreNone) {
  EXPECT_EQ(ways_out("def g():\n  if a:\n    return\ndef f():\n  for i in n:\n    if b: break\n"
                     "  x()  # HERE\n"),
            "");
}

TEST(WaysOut, StandAtModuleLevelToo) {
  EXPECT_EQ(ways_out("if a:\n  with b:\n    exit()\nif c:\n  x()  # HERE\n"), "3 a");
}

TEST(LoopExits, StandAnywhereInTheLoop) {
  const Lines lines = lines_of(R"(
def train():
    for epoch in range(9):
        for batch in loader:
            step()  # HERE
            if batch.last:
                break
            for x in y:
                if x: break
        if loss < best:
            return
)");
  EXPECT_EQ(conditions(loop_exits(lines, line_with(lines, "HERE"))), "batch.last | loss < best");
}

TEST(WaysOut, AreBranchesThatLeaveWhateverWayTheyTake) {
  EXPECT_EQ(ways_out("def f():\n  if a:\n    if b: return 1\n    else: return 2\n  x()  # HERE\n"),
            "3 a");
  EXPECT_EQ(ways_out("def f():\n  if a:\n    try: g()\n    finally: return\n  x()  # HERE\n"),
            "3 a");
  EXPECT_EQ(ways_out("def f():\n  if a:\n    if b: return\n  else:\n    x()  # HERE\n"), "");
}

TEST(AlwaysFails, IsARaiseOnEveryWay) {
  const auto fails = [](const char* source) {
    const Lines lines = lines_of(source);
    return always_fails(lines, line_with(lines, "HERE"));
  };
  EXPECT_TRUE(fails("if a:  # HERE\n  if b: raise E\n  else: sys.exit(1)\n"));
  EXPECT_TRUE(fails("if a: raise E  # HERE\n"));
  EXPECT_FALSE(fails("if a:  # HERE\n  if b: raise E\n"));
  EXPECT_FALSE(fails("if a:  # HERE\n  while True: g()\n"));
}

/// For the innermost loop around the line marked HERE.
bool comes_round(const char* source) {
  const Lines lines = lines_of(source);
  const int line = line_with(lines, "HERE");
  return program::comes_round(lines, loop_around(lines, line)->line, line);
}

TEST(ComesRound, UnlessOnlyAnExceptionRepeatsTheLine) {
  EXPECT_TRUE(comes_round("def f():\n  for x in xs:\n    go(x)  # HERE\n"));
  EXPECT_TRUE(comes_round("for x in xs:\n  go(x)  # HERE\n  if x: break\n"));
  EXPECT_FALSE(
      comes_round("def f():\n  for n in range(3):\n    try:\n      return go()  # HERE\n"
                  "    except OSError:\n      wait()\n"));
  EXPECT_FALSE(
      comes_round("while True:\n  try:\n    go()  # HERE\n    break\n"
                  "  except OSError as e:\n    wait(e)\n"));
  EXPECT_TRUE(
      comes_round("while True:\n  try:\n    go()  # HERE\n"
                  "  except OSError as e:\n    wait(e)\n"));
}

}  // namespace
}  // namespace ddpdoctor::program
