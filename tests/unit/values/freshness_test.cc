// SPDX-License-Identifier: Apache-2.0
// A decision and the current line of a rank: what was assigned between them?
#include "collector/values/freshness.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ddpdoctor::values {
namespace {

/// Freshness of the decision on the line marked "# D" for a rank on the line marked "# N".
std::string asked(const std::vector<std::string>& lines) {
  program::SourceText::Map numbered;
  int decided = 0;
  int now = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const int number = static_cast<int>(i) + 1;
    numbered[number] = lines[i];
    decided = lines[i].find("# D") != std::string::npos ? number : decided;
    now = lines[i].find("# N") != std::string::npos || lines[i].find("# D N") != std::string::npos
              ? number
              : now;
  }
  const program::SourceText text(numbered);
  const program::SourceIndex& index = program::index_of(text);
  const program::Scope& function = index.function_at(now);
  const FileEffects file(index);
  Effects effects;
  effects.add(file);
  const Way way(index, effects, function, now);
  for (const program::Decision& decision : program::decisions_of(index, function)) {
    if (decision.line == decided) {
      const Since since = way.since(decision);
      return since.freshness == Freshness::kFresh   ? "fresh"
             : since.freshness == Freshness::kStale ? since.reason
                                                    : "not reached";
    }
  }
  return "no decision";
}

TEST(Freshness, IsLostByAnAssignmentOnTheWay) {
  EXPECT_EQ(asked({"def f(x):", "  if x:  # D", "    barrier()  # N"}), "fresh");
  EXPECT_EQ(asked({"def f(x):", "  if x:  # D", "    x = 0", "    barrier()  # N"}),
            "`x` is assigned in line 3");
  EXPECT_EQ(asked({"def f(x):", "  if x:  # D", "    y = 0", "  barrier()  # N", "  x = 1"}),
            "fresh");
  EXPECT_EQ(asked({"def f(x):", "  x = g()", "  if x > 1:  # D", "    barrier()  # N"}), "fresh");
  EXPECT_EQ(asked({"def f(self):", "  if self.a.b:  # D", "    self.a = g()", "    h()  # N"}),
            "`self.a` is assigned in line 3");
  EXPECT_EQ(asked({"def f(self):", "  if self.a.b:  # D", "    self.c = g()", "    h()  # N"}),
            "fresh");
}

TEST(Freshness, OfALoopThatWasLeftBeginsWithItsLastIteration) {
  EXPECT_EQ(asked({"def f(x):", "  for i in a:", "    x = g()", "    if x:  # D", "      break",
                   "    h()", "  barrier()  # N"}),
            "fresh");
  EXPECT_EQ(asked({"def f(x):", "  for i in a:", "    x = g()", "    if x:  # D", "      break",
                   "    x = 0", "  barrier()  # N"}),
            "`x` is assigned in line 6");
  EXPECT_EQ(asked({"def f(x):", "  for i in a:", "    x = g()", "    if i:", "      continue",
                   "    if x:  # D", "      break", "  barrier()  # N"}),
            "`x` is assigned in line 3");
  EXPECT_EQ(asked({"def f(x):", "  try:", "    for i in a:", "      x = g()", "      if x:  # D",
                   "        break", "  except E:", "    pass", "  barrier()  # N"}),
            "`x` is assigned in line 4");
}

TEST(Freshness, CountsOnlyTheArmThatWasEntered) {
  EXPECT_EQ(asked({"def f(x):", "  if x:  # D", "    x = 0", "  else:", "    barrier()  # N"}),
            "fresh");
  EXPECT_EQ(asked({"def f(x):", "  if x:  # D", "    x = 0", "    return", "  barrier()  # N"}),
            "fresh");
  EXPECT_EQ(asked({"def f(x):", "  if x:  # D", "    x = 0", "  barrier()  # N"}),
            "`x` is assigned in line 3");
}

TEST(Freshness, GoesRoundALoop) {
  EXPECT_EQ(
      asked({"def f(x):", "  for i in x:", "    step()  # N", "    if i == 3:  # D", "      g()"}),
      "`i` is assigned in line 2");
  EXPECT_EQ(
      asked({"def f(x):", "  for i in x:", "    step()  # N", "    if x.on:  # D", "      g()"}),
      "fresh");
  EXPECT_EQ(asked({"def f(x):", "  for i in x:", "    if i == 3:  # D", "      g()  # N"}),
            "fresh");
  EXPECT_EQ(asked({"def f(x):", "  for i in x:  # N", "    if x.on:  # D", "      g()"}), "fresh");
}

TEST(Freshness, OfALineAheadIsNoQuestion) {
  EXPECT_EQ(asked({"def f(x):", "  step()  # N", "  if x:  # D", "    g()"}), "not reached");
  EXPECT_EQ(asked({"def f(x):", "  if g(x):  # D N", "    pass"}), "not reached");
}

TEST(Freshness, EndsWhereAContainerIsChanged) {
  EXPECT_EQ(asked({"def f(todo):", "  if todo:  # D", "    todo.pop()", "    barrier()  # N"}),
            "`todo` is changed in line 3");
  EXPECT_EQ(asked({"def f(todo):", "  if todo:  # D", "    todo.count(1)", "    barrier()  # N"}),
            "fresh");
  EXPECT_EQ(asked({"def f(d):", "  if d['k']:  # D", "    d['k'] = 1", "    barrier()  # N"}),
            "`d` is assigned in line 3");
}

TEST(Freshness, OfAWhileThatEndedByItsTestIsThatOfTheTest) {
  EXPECT_EQ(asked({"def f(x):", "  while not x:  # D", "    x = g()", "  barrier()  # N"}),
            "fresh");
  EXPECT_EQ(asked({"def f(x):", "  while not x:  # D", "    x = g()", "    if y:", "      break",
                   "  barrier()  # N"}),
            "`x` is assigned in line 3");
}

TEST(Freshness, IsLostByAFunctionThatIsCalled) {
  const std::vector<std::string> refresh{"def refresh(self):", "  self.best = 1"};
  const auto with = [&refresh](std::vector<std::string> lines) {
    lines.insert(lines.begin(), refresh.begin(), refresh.end());
    return asked(lines);
  };
  EXPECT_EQ(with({"def f(self):", "  if self.best:  # D", "    self.refresh()", "    h()  # N"}),
            "`self.best` is assigned in line 2, in refresh");
  EXPECT_EQ(with({"def g(self):", "  self.refresh()", "def f(self):", "  if self.best:  # D",
                  "    self.g()  # N"}),
            "`self.best` is assigned in line 2, in refresh");
  EXPECT_EQ(with({"def f(self):", "  self.refresh()", "  if self.best:  # D", "    h()  # N"}),
            "fresh");
  EXPECT_EQ(with({"def f(self):", "  if self.other:  # D", "    self.refresh()  # N"}), "fresh");
  EXPECT_EQ(asked({"class T:", "  def __init__(self):", "    self.best = 1",
                   "  def f(self):", "    if self.best:  # D", "      T()  # N"}),
            "fresh");
}

TEST(Freshness, OfOneStatementIsThatOfItsTest) {
  EXPECT_EQ(asked({"def f(x):", "  x and barrier()  # D N"}), "fresh");
  EXPECT_EQ(asked({"def f(x):", "  x = barrier() if x else None  # D N"}), "fresh");
}

TEST(Operands, AreNamesAndPathsAsWritten) {
  const program::SourceText text({{1, "a.b.c > d[e] and f(g)"}});
  const std::vector<std::string> expected{"a.b.c", "d", "e", "f", "g"};
  EXPECT_EQ(operands_of(program::index_of(text).root()), expected);
}

}  // namespace
}  // namespace ddpdoctor::values
