// SPDX-License-Identifier: Apache-2.0
// What ends a loop when its data ends, and what skips one of its iterations.
#include "collector/program/questions/data_ends.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

/// "taken / noticed" as written in the source; empty if the loop on the line with LOOP has no such
/// end.
std::string end_in(const std::string& source) {
  const Lines lines = lines_of(source);
  const auto end = data_end_of(lines, line_with(lines, "# LOOP"));
  return !end ? "" : statement_at(lines, end->taken) + " / " + statement_at(lines, end->noticed);
}

TEST(DataEnd, IsStopIterationThatLeavesTheLoop) {
  EXPECT_EQ(end_in("while True:  # LOOP\n  try:\n    x = next(it)\n  except StopIteration:\n"
                   "    break\n  f(x)\n"),
            "x = next(it) / except StopIteration:");
  EXPECT_EQ(end_in("def f():\n  while 1:  # LOOP\n    try:\n      step(next(it))\n"
                   "    except (StopIteration, queue.Empty):\n      print()\n      return\n"),
            "step(next(it)) / except (StopIteration, queue.Empty):");
  EXPECT_EQ(end_in("try:\n  while True:  # LOOP\n    x = next(it)\n    f(x)\n"
                   "except StopIteration:\n  pass\n"),
            "x = next(it) / except StopIteration:");
}

TEST(DataEnd, IsAFlagThatOnlyTheEndSets) {
  EXPECT_EQ(end_in("done = False\nwhile not done:  # LOOP\n  try:\n    x = next(it)\n    f(x)\n"
                   "  except StopIteration:\n    done = True\n"),
            "x = next(it) / while not done:");
}

TEST(DataEnd, IsAValueThatSaysThereIsNoMore) {
  EXPECT_EQ(end_in("while (x := next(it, None)) is not None:  # LOOP\n  f(x)\n"),
            "while (x := next(it, None)) is not None: / while (x := next(it, None)) is not None:");
  EXPECT_EQ(end_in("while (x := source()) is not None:  # LOOP\n  f(x)\n"),
            "while (x := source()) is not None: / while (x := source()) is not None:");
  EXPECT_EQ(end_in("while True:  # LOOP\n  x = q.get()\n  if x is END:\n    break\n  f(x)\n"),
            "x = q.get() / if x is END:");
}

TEST(DataEnd, DoesNotDependOnWhatTheSourceOrTheReaderIsCalled) {
  EXPECT_EQ(end_in("while True:  # LOOP\n  x = well.draw()\n  if x is None:\n    break\n  f(x)\n"),
            "x = well.draw() / if x is None:");
  EXPECT_EQ(end_in("while x := self.well(4):  # LOOP\n  f(x)\n"),
            "while x := self.well(4): / while x := self.well(4):");
  // The item is not used: it only signals the end.
  EXPECT_EQ(end_in("while True:  # LOOP\n  x = q.get()\n  if not x:\n    break\n  f()\n"), "");
  EXPECT_EQ(end_in("while ok := self.next_step():  # LOOP\n  f()\n"), "");
}

TEST(DataEnd, IsNoOtherWayOutOfALoop) {
  EXPECT_EQ(end_in("while (loss := step(next(it))) > 0.1:  # LOOP\n  f()\n"), "");
  EXPECT_EQ(end_in("while (stop := asked()) is None:  # LOOP\n  f()\n"), "");
  EXPECT_EQ(end_in("while (x := y) is not None:  # LOOP\n  f(x)\n"), "");
  EXPECT_EQ(end_in("while True:  # LOOP\n  try:\n    x = next(it)\n  except StopIteration:\n"
                   "    it = iter(loader)\n"),
            "");
  EXPECT_EQ(end_in("while True:  # LOOP\n  try:\n    x = next(it)\n  except ValueError:\n"
                   "    break\n"),
            "");
  EXPECT_EQ(end_in("while True:  # LOOP\n  x = step(batch)\n  if x is None:\n    break\n"), "");
  EXPECT_EQ(end_in("while True:  # LOOP\n  stop = store.get(key)\n  if stop:\n    break\n"), "");
  EXPECT_EQ(end_in("while True:  # LOOP\n  for y in z:\n    x = q.get()\n    if x is END:\n"
                   "      break\n"),
            "");
}

std::string skips(const std::string& source) {
  const Lines lines = lines_of(source);
  return conditions(skips_before(lines, line_with(lines, "HERE")));
}

TEST(Skips, AreTestsOfTheRoundsOwnData) {
  EXPECT_EQ(skips("for i, x in enumerate(loader):\n  if x is None:\n    continue\n  y = f(x)\n"
                  "  if y.isnan(): continue\n  g(y)  # HERE\n"),
            "y.isnan() | x is None");
}

TEST(Skips, AreTestsOfWhatARoundOfACountedLoopComputes) {
  const auto with = [](const std::string& bound) {
    return skips("for i in range(n):\n  x = " + bound +
                 "\n  if x > limit: continue\n"
                 "  g(i)  # HERE\n");
  };
  for (const char* own : {"norm(params)", "data[i]", "next(it)", "random()", "f(net, i)"}) {
    EXPECT_EQ(with(own), "x > limit") << own;
  }
  for (const char* counted : {"i // per_epoch", "schedule(i)", "i", "3"}) {
    EXPECT_EQ(with(counted), "") << counted;
  }
}

TEST(Skips, AreNoCountersOptionsOrLaterTests) {
  EXPECT_EQ(skips("for i, x in enumerate(loader):\n  if i < start: continue\n"
                  "  if dry_run: continue\n  for z in x:\n    if z: continue\n"
                  "  g(x)  # HERE\n  if x: continue\n"),
            "");
  EXPECT_EQ(skips("if x: pass\ng()  # HERE\n"), "");
}

}  // namespace
}  // namespace ddpdoctor::program
